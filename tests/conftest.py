"""What every test shares: a data folder of its own, so that no test reads or writes the user's runs, and the suite's order."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SPLIT_BY = "worker"
"""A fixture of a module by whose parameter its tests are dealt out too: what is dear to start is started once for each anyway."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Name the group of a test where xdist deals out groups; it reads the names before any other hook sees all tests."""
    if item.config.getoption("loadgroup", default=False):
        item.add_marker(pytest.mark.xdist_group(_group(item)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups that hold slow tests: a long one at the end would leave a core idle."""
    slow = {_group(item) for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: _group(item) not in slow)


def _group(item: pytest.Item) -> str:
    """Return the file of a test, and the parameter of its `SPLIT_BY` where it has one: such tests share no other fixture."""
    indices: dict[str, int] = item.callspec.indices if hasattr(item, "callspec") else {}
    name = item.path.relative_to(item.config.rootpath).as_posix()
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
