"""Facts, each with its source and date: accelerators, prices, framework support, runtimes and presets.

This room states and never computes. It is data files and the few functions that read them, lazily and once.
"""

from catalog.environments import EnvironmentSpec, environment_spec, environment_specs, environments_of
from catalog.hardware import accelerator, accelerators
from catalog.offers import cheapest, clouds, prices
from catalog.presets import DEMO, Preset, preset, preset_names
from catalog.runtimes import RuntimeSpec, Support, family_of, runtime_specs, support, support_of_family

__all__ = [
    "DEMO", "EnvironmentSpec", "Preset", "RuntimeSpec", "Support", "accelerator", "accelerators", "cheapest", "clouds",
    "environment_spec", "environment_specs", "environments_of", "family_of", "preset", "preset_names", "prices",
    "runtime_specs", "support", "support_of_family",
]
