"""What every use case stands on: the settings and the store of this process, made once."""

import getpass
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from core.errors import StoreError, one_line
from core.settings import Settings, settings_from
from db import Store


@dataclass(frozen=True, slots=True)
class Context:
    """The settings and the store that a use case works with."""

    settings: Settings
    store: Store


@cache
def context() -> Context:
    """Return the context of this process, made from its environment on the first call.

    Raises:
        BadInput: no place to keep data is known, or the database address is wrong.
        StoreError: the folder or the database cannot be used.
    """
    return make_context({**_user(), **os.environ})


def _user() -> dict[str, str]:
    """Return the name of this user as the system knows it, for environments that do not say it."""
    with suppress(OSError, KeyError):
        return {"USER": getpass.getuser()}
    return {}


def make_context(environ: Mapping[str, str]) -> Context:
    """Make the home folder, for this user alone, and bring the database to the present schema.

    Args:
        environ: variables as in `os.environ`.

    Raises:
        BadInput: no place to keep data is known, or the database address is wrong.
        StoreError: the folder or the database cannot be used.
    """
    settings = settings_from(environ)
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StoreError(one_line(f"got {error.strerror} for the folder {settings.home}; "
                                  "expected a folder that this user can write; set TANDEM_HOME to another one")) from None
    store = Store(settings.database_url)
    store.migrate()
    return Context(settings, store)
