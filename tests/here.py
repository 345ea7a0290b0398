"""What this machine has, read before tests point Tandem at a folder of their own: the environments of the user are used."""

import os

from catalog import environment_spec
from core.settings import settings_from
from probes.environments import Environments
from probes.runtimes import installed_runtimes

_SETTINGS = settings_from(os.environ)
ENVIRONMENTS = Environments(_SETTINGS.home)
_RAY = ENVIRONMENTS.find(environment_spec("ray"))
RAY = dict(_SETTINGS.interpreters).get("ray") or (str(_RAY.interpreter) if _RAY else None)
"""Python that holds Ray; None without."""
RUNTIMES = tuple(runtime for runtime in installed_runtimes(_SETTINGS.interpreters, _SETTINGS.home) if runtime.installed)
