"""What a rule about a split may look at: one workload over two unlike pools, and what is known of the way between them.

A planner of splits fills it in. Where nobody plans yet, `asked_split` makes one of two unlike kinds of pools that the user
named, with everything else unknown: rules then say what can be said, and warn where a plan would be refused.
"""

from dataclasses import dataclass

from advisor.rules.case import Code
from catalog import accelerators
from core.device import Accelerator

EXACT = ("bit-reproducible", "bit-reproducibility", "bitwise-reproducible", "deterministic")



JOINS = ("horovod", "byteps", "hivemind", "diloco", "torchft", "ray-train")
"""Libraries that join machines into one training: with them two kinds of pools are one job and not a choice."""
CHECKPOINTS = ("orbax", "orbax-checkpoint", "orbax-export", "tensorstore", "safetensors", "tf-estimator", "tensorflow-estimator")
"""Libraries whose files are meant to be opened elsewhere."""
JOINED = ("data-parallel", "synchronous-data-parallel", "sync-dp", "hybrid", "mixed-devices")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two pools.

    Args:
        accelerator: catalog key, or device id.
        kind: of its chips.
        vendor: lower case; empty when it is not known.
        count: chips.
        chip: catalog entry; None when there is none.
        runtime: id of the runtime on it; empty when that is open.
        site: cloud and region or another name of the place; empty when it is not known.
    """

    accelerator: str
    kind: str
    vendor: str
    count: int
    chip: Accelerator | None = None
    runtime: str = ""
    site: str = ""

    @property
    def family(self) -> str:
        """What its collectives are made for: a TPU's ICI, NCCL, RCCL, or a processor; another vendor's name otherwise."""
        return self.kind if self.kind in ("tpu", "cpu") else self.vendor or self.kind


@dataclass(frozen=True, slots=True)
class SplitCase:
    """One workload over two pools; None is not known.

    Args:
        code: what rules look up of the workload.
        sides: the two pools, in the order of the data where there is one.
        planned: whether a planner proposes it; False when the user only named two kinds of pools.
        joined: whether the code or the task says that both work on one job; pools that are named side by side are a choice.
        synchronous: whether every step waits for a sum over both pools.
        staged: whether that sum passes through the hosts, each side reducing its own, and its time is in the plan.
        handed_over: whether the second uses what the first made, so that they share no step.
        one_program: whether one compiled computation spans both.
        link_bytes_per_s: between the pools, one direction.
        link_latency_s: one way.
        transfer_bytes: what crosses in one step or hand-over.
        stage_s: time of the stage that waits for it.
        meets_alone: whether one of the pools meets deadline and budget without the other.
        saving: part of time or cost that the split saves against the better pool alone.
        reproducible: whether bit-equal results on both are asked for.
        serves_second: whether the second pool serves what the first one trains.
    """

    code: Code
    sides: tuple[Side, Side]
    planned: bool = True
    joined: bool = True
    synchronous: bool | None = None
    staged: bool = False
    handed_over: bool = False
    one_program: bool | None = None
    link_bytes_per_s: float | None = None
    link_latency_s: float | None = None
    transfer_bytes: float | None = None
    stage_s: float | None = None
    meets_alone: bool | None = None
    saving: float | None = None
    reproducible: bool | None = None
    serves_second: bool | None = None

    @property
    def unlike(self) -> bool:
        """Whether the two pools share no collective library."""
        return self.sides[0].family != self.sides[1].family

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of chips on both sides."""
        return frozenset(side.kind for side in self.sides)

    @property
    def gpu_and_tpu(self) -> bool:
        """Whether one side has GPUs and the other TPUs."""
        return self.kinds == frozenset(("gpu", "tpu"))

    @property
    def names(self) -> str:
        """Both pools as they are named to a person."""
        return " and ".join(f"{side.count} x {side.accelerator}" for side in self.sides)

    def has(self, kind: str) -> bool:
        """Return whether one side has chips of a kind."""
        return kind in self.kinds


def side_of(accelerator: str, count: int) -> Side:
    """Return one side by the catalog key or device id that names it.

    Args:
        accelerator: such as `tpu-v6e` or `gpu:0`.
        count: chips.
    """
    chip = accelerators().get(accelerator)
    if chip is None:
        return Side(accelerator, accelerator.split(":", maxsplit=1)[0], "", count)
    return Side(accelerator, chip.kind, chip.vendor.lower(), count, chip)


def asked_split(code: Code) -> SplitCase | None:
    """Return the split that a user may have in mind who names two unlike kinds of pools; None when there are no two.

    Args:
        code: of the workload.
    """
    sides = [side_of(accelerator, count) for accelerator, count in code.asked]
    first = sides[0] if sides else None
    second = next((side for side in sides if first is not None and side.family != first.family), None)
    if first is None or second is None:
        return None
    joined = bool(code.needs(*JOINS) or code.names(*JOINED)) or code.workload.task == "preprocess"
    exact = bool(code.names(*EXACT)) or None
    return SplitCase(code, (first, second), planned=False, joined=joined, reproducible=exact)


def moves_checkpoints(case: SplitCase) -> bool:
    """Return whether a model is written on one side and read on the other: by the plan, or by what its code saves with."""
    return case.joined or bool(case.code.needs(*CHECKPOINTS))
