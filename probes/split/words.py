"""Words of a split that is run: who, what, over which link, and what came of it. Numbers only; services turn them into pages."""

from dataclasses import dataclass, replace
from itertools import pairwise

from core.errors import BadInput
from core.split import Bar, Check
from core.statistics import median
from core.workload import Size

MODES = ("data", "local", "pipeline", "operators", "rl")
"""Those of `core.split.MODES` in which two sides work on one model, step by step."""
TRANSPORTS = ("memory", "grpc")

LayerSpec = tuple[str, tuple[tuple[str, Size], ...], int]
"""Kind, sizes and repeats of a block, as `core.workload.Block` has them."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a side is started that is not on this host: on a node of a Ray cluster that has what it needs.

    Args:
        address: HOST:PORT of the cluster's head.
        resource: as Ray names it: `CPU`, `GPU`, `TPU` or one of the cluster's own.
        amount: of it; what Ray gives to one side, it gives to no other.
        model: of the accelerator, as Ray names it; empty for any.
    """

    address: str
    resource: str
    amount: int = 1
    model: str = ""


@dataclass(frozen=True, slots=True)
class SideSpec:
    """One side: a runtime on a device, in a process of its own.

    Args:
        name: as in the lanes of the timeline; the two sides differ in it.
        runtime: a runtime id.
        device_kind: `cpu`, `gpu` or `tpu`.
        interpreter: path of its Python; of the one that knows Ray where `reach` is given.
        cores: logical cores that it is kept on; empty leaves it to the system.
        device_uuid: what is leased while it is measured; empty for no lease.
        visible: (variable, value) that show it no other device than its own.
        vendor: of the device; empty when unknown.
        models: module that offers `open_model`, and `open_backend` where the runtime is none of ours; empty takes the one of the
            runtime's framework.
        reach: the cluster that it is started on; None for this host.
    """

    name: str
    runtime: str
    device_kind: str
    interpreter: str
    cores: tuple[int, ...] = ()
    device_uuid: str = ""
    visible: tuple[tuple[str, str], ...] = ()
    vendor: str = ""
    models: str = ""
    reach: Reach | None = None


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """How the sides are joined.

    Args:
        transport: one of `TRANSPORTS`: shared memory within a host, gRPC between hosts.
        bytes_per_s: what each direction is held to; None for what the transport gives.
        latency_s: added to each message.
        sixteen_bit: whether gradients travel as bfloat16.
    """

    transport: str = "memory"
    bytes_per_s: float | None = None
    latency_s: float = 0.0
    sixteen_bit: bool = False

    def __post_init__(self) -> None:
        """Refuse what no link is."""
        if self.transport not in TRANSPORTS:
            raise BadInput(f"transport {self.transport!r}", f"one of {', '.join(TRANSPORTS)}", "choose one of these")
        slow = self.bytes_per_s is not None and not 0 < self.bytes_per_s < float("inf")
        if slow or not 0 <= self.latency_s < 60:
            got = f"a link of {self.bytes_per_s} bytes/s and {self.latency_s} s"
            raise BadInput(got, "a rate above zero and a latency from 0 to 60 s", "correct the link")


@dataclass(frozen=True, slots=True)
class SplitTask:
    """What the two sides do together.

    Args:
        mode: one of `MODES`.
        layers: of the model, in order.
        batch: samples of one global step.
        rows: samples of each side in `data` and `local`; they add up to the batch. 0 leaves a side idle.
        most: samples that each side takes at one go; 0 for all of them.
        cut: pieces of the model on the first side, for `pipeline` and `operators`.
        micro_batches: equal parts of the batch, for `pipeline`.
        ahead: steps that the first side runs ahead, for `operators` (0 or 1), or the actor, for `rl`.
        inner_steps: of each side between two meetings, for `local`.
        actor: the side that samples, 0 or 1, for `rl`; the other learns.
        push_every: learner steps between two pushes of weights, for `rl`.
        generate: positions that the actor samples of a sequence, for `rl`.
        optimizer, dtype, seed: of the model.
    """

    mode: str
    layers: tuple[LayerSpec, ...]
    batch: int
    rows: tuple[int, int] = (0, 0)
    most: tuple[int, int] = (0, 0)
    cut: int = 0
    micro_batches: int = 1
    ahead: int = 0
    inner_steps: tuple[int, int] = (1, 1)
    actor: int = 0
    push_every: int = 1
    generate: int = 4
    optimizer: str = "sgd"
    dtype: str = "fp32"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        if self.mode not in MODES:
            raise BadInput(
                f"mode {self.mode!r} to run", f"one of {', '.join(MODES)}", "choose one of these; others are only planned"
            )
        if self.batch < 1 or not self.layers:
            raise BadInput(
                f"a batch of {self.batch} through {len(self.layers)} layers", "one of each at least", "correct the workload"
            )
        divided = self.mode in ("data", "local")
        if divided and (min(self.rows) < 0 or sum(self.rows) != self.batch):
            raise BadInput(f"shares of {self.rows} samples", f"two that add up to {self.batch}", "correct the shares")
        if self.mode == "local" and (min(self.rows) < 1 or min(self.inner_steps) < 1):
            raise BadInput(f"{self.rows} samples and {self.inner_steps} steps", "one at least of each side", "correct the shares")
        if min(self.most) < 0 or self.micro_batches < 1 or self.push_every < 1 or self.generate < 1 or self.ahead < 0:
            raise BadInput("a count below the least", "counts from 1 (most and ahead from 0)", "correct the plan")
        if self.actor not in (0, 1):
            raise BadInput(f"side {self.actor} as the actor", "0 or 1", "choose one of these")
        if self.mode == "pipeline" and self.batch % self.micro_batches:
            got = f"{self.micro_batches} micro-batches of {self.batch} samples"
            raise BadInput(got, "a number that divides the batch", "choose another")
        if self.mode == "operators" and self.ahead > 1:
            raise BadInput(f"{self.ahead} steps ahead", "0 or 1", "choose one of these")


@dataclass(frozen=True, slots=True)
class SideStep:
    """One step on one side.

    Args:
        start_s, stop_s: on the clock of the host.
        bars: (kind, start, stop, what) in order, on the same clock; kinds are those of `core.split.BAR_KINDS`.
        loss: this side's part of the step's loss; None where it sees none.
        sent_bytes: that it gave to the channel.
        count: of what the mode counts (staleness, for `rl`); None where it counts nothing.
    """

    start_s: float
    stop_s: float
    bars: tuple[tuple[str, float, float, str], ...]
    loss: float | None
    sent_bytes: int
    count: float | None = None

    def seconds(self, kind: str) -> float:
        """Return the seconds that went to one kind of bar."""
        return sum(stop - start for name, start, stop, _ in self.bars if name == kind)


@dataclass(frozen=True, slots=True)
class Ran:
    """What was measured of a split that ran.

    Args:
        steps: of each side, warm-up left out. A step is a round of all inner steps in `local`.
        checks: against one runtime alone, and of one side against the other.
        parameter_count: of the whole model.
        versions: of each side, (name, version).
    """

    steps: tuple[tuple[SideStep, ...], tuple[SideStep, ...]]
    checks: tuple[Check, ...]
    parameter_count: int
    versions: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]

    @property
    def step_s(self) -> tuple[float, ...]:
        """Seconds from the end of each step to the end of the next, on the side that ends it later."""
        return periods(self.steps)

    @property
    def losses(self) -> tuple[float, ...]:
        """Of each step, both sides together."""
        sides = [[step.loss for step in side] for side in self.steps if side]
        counted = [side for side in sides if any(loss is not None for loss in side)]
        return tuple(sum(loss or 0.0 for loss in step) for step in zip(*counted, strict=False))

    @property
    def holds(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def timeline(self, names: tuple[str, str]) -> tuple[Bar, ...]:
        """Return the bars of the step whose length is nearest to the median, from its start on.

        Args:
            names: of the sides, for the lanes.
        """
        lengths = self.step_s
        if not lengths:
            return ()
        middle = median(lengths)
        index = 1 + min(range(len(lengths)), key=lambda at: abs(lengths[at] - middle))
        chosen = [(name, side[index]) for name, side in zip(names, self.steps, strict=True) if len(side) > index]
        begin = min(step.start_s for _, step in chosen)
        return tuple(Bar(name, a - begin, b - begin, kind, what) for name, step in chosen for kind, a, b, what in step.bars)


@dataclass(frozen=True, slots=True)
class SplitFailure:
    """A split that did not end as planned; what was measured until then is kept.

    Args:
        stage: what was being done: `lease`, `start`, `open`, `model`, `steps`, `check`, `pace`.
        error: one line.
        side: whose fault it was, by name; empty for neither.
        exit_code, stderr_tail: of that side; None and empty while it lives.
        steps: of each side until then.
    """

    stage: str
    error: str
    side: str = ""
    exit_code: int | None = None
    stderr_tail: str = ""
    steps: tuple[tuple[SideStep, ...], tuple[SideStep, ...]] = ((), ())

    @property
    def step_s(self) -> tuple[float, ...]:
        """As `Ran.step_s`, of the steps that both ended."""
        return periods(self.steps)


@dataclass(frozen=True, slots=True)
class Cost:
    """How long one piece of a side's work took.

    Args:
        what: `compute`, `flatten`, `reduce`, `update`, `forward`, `backward`, `rollout`, `train`, `load`.
        rows: samples; 0 where it does not depend on them.
        loaded: whether the other side worked at the same time, as it does in a step.
        samples_s: raw.
    """

    what: str
    rows: int
    loaded: bool
    samples_s: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Median of the samples."""
        return median(self.samples_s)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a planner needs of two sides and their channel.

    Args:
        costs: of each side.
        exchanges: (bytes each way, seconds) of both sides sending and receiving at once, raw.
        sends: (bytes, seconds) from the first side to the second, from sending to having it, raw.
        gradient_bytes: of the whole model as it travels.
        activation_bytes: of the whole batch where the model is cut, as they travel; 0 where it is not.
    """

    costs: tuple[tuple[Cost, ...], tuple[Cost, ...]]
    exchanges: tuple[tuple[int, float], ...]
    sends: tuple[tuple[int, float], ...]
    gradient_bytes: int
    activation_bytes: int = 0

    def pace(self, side: int, what: str, loaded: bool) -> tuple[tuple[int, float], ...]:
        """Return (rows, median seconds) of one piece of a side's work, rows ascending."""
        chosen = [cost for cost in self.costs[side] if (cost.what, cost.loaded) == (what, loaded) and cost.samples_s]
        return tuple(sorted((cost.rows, cost.seconds) for cost in chosen))

    def longer_s(self, rows: tuple[int, int], pieces: tuple[str, ...] = ("compute", "flatten")) -> float | None:
        """Return the median of the longer of both sides' work, over all pairs of samples; None where shares were not measured.

        It is more than the longer of the two medians where both take about as long and neither is steady: whoever is late is late
        for both.

        Args:
            rows: of each side, measured while both worked.
            pieces: of a step that come before the sides meet.
        """
        sides: list[list[float]] = []
        for side, count in enumerate(rows):
            found = {cost.what: cost.samples_s for cost in self.costs[side] if (cost.rows, cost.loaded) == (count, True)}
            goes = zip(*(found.get(piece, ()) for piece in pieces), strict=False)
            sides.append([sum(go) for go in goes])
        longer = [max(one, other) for one in sides[0] for other in sides[1]]
        return median(longer) if longer else None

    def with_more(self, other: "Calibrated") -> "Calibrated":
        """Return this with the samples of another calibration of the same sides added to its own; links stay as they are here."""
        first, second = (_joined(*pair) for pair in zip(self.costs, other.costs, strict=True))
        return replace(self, costs=(first, second))


def _joined(costs: tuple[Cost, ...], more: tuple[Cost, ...]) -> tuple[Cost, ...]:
    """Return the costs of one side, samples of the same piece of work together."""
    found: dict[tuple[str, int, bool], tuple[float, ...]] = {}
    for cost in (*costs, *more):
        key = (cost.what, cost.rows, cost.loaded)
        found[key] = found.get(key, ()) + cost.samples_s
    return tuple(Cost(*key, samples_s) for key, samples_s in found.items())


def periods(steps: tuple[tuple[SideStep, ...], ...]) -> tuple[float, ...]:
    """Return the seconds between the ends of successive steps, where the later of the sides ends each.

    Args:
        steps: of each side; one without any is idle and does not count.
    """
    ends = [max(step.stop_s for step in pair) for pair in zip(*(side for side in steps if side), strict=False)]
    return tuple(late - early for early, late in pairwise(ends))
