"""What every test shares: a data folder of its own, so that no test reads or writes the user's runs, and the suite's order."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("tandem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tandem")  # a busy machine is no fault of a test: none may fail by its seconds


class Groups(LoadScopeScheduling):
    """Deals out whole groups of tests, so that what is dear to start is started once.

    xdist's own `loadgroup` writes names of groups where this pytest no longer reads them, and deals out single tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Return the file of a test, and its first parameter where that ends with `@`: such a parameter's tests share no fixture."""
    file, _, name = nodeid.partition("::")
    parameter, sign, _ = name.partition("[")[2].partition("@-")
    return f"{file}[{parameter}" if sign else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups | None:
    """Stand in for xdist's distribution by groups."""
    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups that hold slow tests: a long one at the end would leave a core idle."""
    slow = {group_of(item.nodeid) for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: group_of(item.nodeid) not in slow)


def pytest_configure() -> None:
    """Let what tests start be stopped by Ctrl-C, also where a shell that ran the suite in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
