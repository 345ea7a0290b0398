"""What every test shares: a data folder of its own, so that no test reads or writes the user's runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


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
