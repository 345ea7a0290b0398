"""What every test shares: a data folder of its own, so that no test reads or writes the user's runs, and the suite's order."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SPLIT_BY = "worker"
"""A fixture of a module by whose parameter its tests are dealt out too: what is dear to start is started once for each anyway."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal out whole groups of tests, those that hold slow ones first: a long one at the end would leave a core idle."""
    groups = {item: _group(item) for item in items}
    slow = {groups[item] for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: groups[item] not in slow)
    if config.getoption("loadgroup", default=False):  # set by xdist in the processes that it deals out to
        for item in items:
            item.add_marker(pytest.mark.xdist_group(groups[item]))


def _group(item: pytest.Item) -> str:
    """Return the file of a test, and the parameter of its `SPLIT_BY` where it has one: such tests share no other fixture."""
    name = item.nodeid.split("::", maxsplit=1)[0]
    indices: dict[str, int] = item.callspec.indices if hasattr(item, "callspec") else {}
    return f"{name}-{indices[SPLIT_BY]}" if SPLIT_BY in indices else name


@pytest.fixture(scope="session", autouse=True)
def tandem_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point `TANDEM_HOME` at a fresh folder for the whole session, and drop every other setting of Tandem."""
    home = tmp_path_factory.mktemp("tandem-home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TANDEM_")]:
            patch.delenv(name)
        patch.setenv("TANDEM_HOME", str(home))
        patch.setenv("TANDEM_LEASES", str(home / "leases"))  # the two processes of `./tandem test` do not wait for each other
        patch.setenv("TANDEM_OWNER", "tests")
        yield home
