"""Facts, each with its source and date: accelerators, prices, framework support, runtimes and presets.

This room states and never computes. It is data files and the few functions that read them, lazily and once.
"""

from catalog.age import Age, age_of, price_age
from catalog.environments import EnvironmentSpec, environment_spec, environment_specs, environments_of
from catalog.hardware import accelerator, accelerators
from catalog.machines import Machine, machine_named, machines, machines_of
from catalog.names import Named, counted, names_of, parse_name, slice_name
from catalog.offers import INDEX, TERMS, cheapest, clouds, paid_chips, prices, regions, rents_in
from catalog.presets import DEMO, Preset, preset, preset_names
from catalog.runtimes import RuntimeSpec, Support, family_of, runtime_specs, support, support_of_family
from catalog.slices import count_fault, count_note, generations, legal_counts, nearest_counts, slice_of, slice_with

__all__ = [
    "DEMO", "INDEX", "TERMS", "Age", "EnvironmentSpec", "Machine", "Named", "Preset", "RuntimeSpec", "Support", "accelerator",
    "accelerators", "age_of", "cheapest", "clouds", "count_fault", "count_note", "counted", "environment_spec",
    "environment_specs", "environments_of", "family_of", "generations", "legal_counts", "machine_named", "machines",
    "machines_of", "names_of", "nearest_counts", "paid_chips", "parse_name", "preset", "preset_names", "price_age", "prices",
    "regions", "rents_in", "runtime_specs", "slice_name", "slice_of", "slice_with", "support", "support_of_family",
]
