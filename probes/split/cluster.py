"""What a Ray cluster has, asked before anything is kept: `python -m probes.split.cluster ADDRESS`, in a Python that holds Ray.

It prints JSON, pairs of a resource and how many there are; as in `probes.split.relay`, Ray is imported inside functions.
"""

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from core.errors import BadInput
from probes.split.words import Reach

APART = ("node:", "memory", "object_store_memory")
"""What Ray counts beside processors and accelerators."""
_MODEL = "accelerator_type:"


def check_has(resources: Mapping[str, float], reach: Reach) -> None:
    """Refuse what no cluster with such resources can give, free or not.

    Args:
        resources: as Ray counts them.
        reach: what a side needs.

    Raises:
        BadInput: there is less, or none of that model.
    """
    there = {name: count for name, count in resources.items() if not name.startswith(APART)}
    if there.get(reach.resource, 0) >= reach.amount and (not reach.model or f"{_MODEL}{reach.model}" in there):
        return
    raise BadInput(
        f"a cluster without {wanted(reach)}", f"some of what it has: {told(resources)}", "ask for that, or let the cluster grow"
    )


def wanted(reach: Reach) -> str:
    """Return what a side needs, in words."""
    return f"{reach.amount} {reach.resource}{f' of {reach.model}' if reach.model else ''}"


def told(resources: Mapping[str, float]) -> str:
    """Return what a cluster has, in words."""
    there = sorted((name, count) for name, count in resources.items() if not name.startswith(APART))
    return ", ".join(f"{count:g} {name}" for name, count in there) or "nothing"


def main(address: str) -> None:
    """Print what the cluster has."""
    ray: Any = import_module("ray")
    ray.init(address, log_to_driver=False, configure_logging=False)
    sys.stdout.write(json.dumps([(name, float(count)) for name, count in ray.cluster_resources().items()]))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
