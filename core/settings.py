"""Settings: one frozen value, built once from the environment that is passed in."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things live.

    Args:
        home: data directory of this user (database, leases, compile caches, run logs).
        database_url: SQLAlchemy address.
        owner: name that new runs carry.
        interpreters: (runtime id, Python path) from `TANDEM_PYTHON_<RUNTIME>`.
        leases: folder of the locks on devices; one for the whole host, so that no two people measure one device at once.
        weak_sandbox: whether an administrator accepts that files of strangers are read in a sandbox below the minimum.
        ray_address: head of the Ray cluster that sides of a split may be started on; empty for none.
    """

    home: Path
    database_url: str
    owner: str
    interpreters: tuple[tuple[str, str], ...] = ()
    leases: Path = Path(gettempdir()) / "tandem-leases"
    weak_sandbox: bool = False
    ray_address: str = ""


def settings_from(environ: Mapping[str, str]) -> Settings:
    """Build the settings from `TANDEM_*` variables, `USER`, `HOME` and `XDG_DATA_HOME`.

    Raises:
        BadInput: neither `TANDEM_HOME` nor a home directory is set.
    """
    home = environ.get("TANDEM_HOME")
    if not home:
        data = environ.get("XDG_DATA_HOME")
        if not data:
            user_home = environ.get("HOME")
            if not user_home:
                raise BadInput("no HOME and no TANDEM_HOME", "a folder to keep data in", "set TANDEM_HOME")
            data = f"{user_home}/.local/share"
        home = f"{data}/tandem"
    path = Path(home).absolute()
    prefix = "TANDEM_PYTHON_"
    interpreters = tuple(
        sorted(
            (key[len(prefix) :].lower().replace("_", "-"), value)
            for key, value in environ.items()
            if key.startswith(prefix) and value
        )
    )
    url = environ.get("TANDEM_DATABASE_URL") or f"sqlite:///{path}/tandem.db"
    leases = Path(environ.get("TANDEM_LEASES") or Path(gettempdir()) / "tandem-leases")
    owner = environ.get("TANDEM_OWNER") or environ.get("USER") or ""
    weak = environ.get("TANDEM_ACCEPT_WEAK_SANDBOX") == "1"
    return Settings(path, url, owner, interpreters, leases, weak, environ.get("TANDEM_RAY_ADDRESS", ""))
