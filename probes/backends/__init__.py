"""Backends: one file a framework, the only place where that framework is imported, and only when it is opened.

A backend module offers `RUNTIMES`, the runtime ids that it serves, and `open_backend(runtime, device_kind)`.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from core.errors import NotFound


@cache
def backend_modules() -> dict[str, ModuleType]:
    """Return the backend module of each runtime id; importing them imports no framework.

    Raises:
        ImportError: a file of the folder lacks `RUNTIMES` or `open_backend`.
    """
    found: dict[str, ModuleType] = {}
    for entry in iter_modules(__path__):
        module = import_module(f"{__name__}.{entry.name}")
        if not hasattr(module, "RUNTIMES"):
            continue
        if not hasattr(module, "open_backend"):
            raise ImportError(f"got backend file {entry.name} without open_backend; expected RUNTIMES and open_backend")
        found.update(dict.fromkeys(module.RUNTIMES, module))
    return found


def backend_module(runtime: str) -> ModuleType:
    """Return the module that serves a runtime id.

    Raises:
        NotFound: no file serves it.
    """
    modules = backend_modules()
    if runtime not in modules:
        raise NotFound(f"runtime {runtime!r}", f"one of {', '.join(sorted(modules))}", "choose one of these")
    return modules[runtime]
