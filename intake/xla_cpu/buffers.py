"""When each buffer of a compiled program is needed, which operand's place it takes, and where XLA's CPU compiler puts it.

Sources (github.com/openxla/xla): service/heap_simulator (a result takes the place of an operand of its size that ends with it; of
the rest the largest is placed first, into the narrowest gap) and service/buffer_assignment.cc (the memory of a result serves for
smaller buffers until it is written); service/copy_insertion.cc (what a loop changes has a buffer of its own).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from intake.xla_cpu.before import all_before, owner_of
from intake.xla_cpu.copies import with_copies
from intake.xla_cpu.fusion import Kernel, kernels_of
from intake.xla_cpu.hlo import Body, Op
from intake.xla_cpu.order import ordered

ALIGNMENT = 64
"""Bytes (cpu_function_runtime::MinAlign)."""
POINTER = 8
"""Bytes of one entry of a table of results."""


@dataclass(slots=True, eq=False)
class Buffer:
    """One piece of memory.

    Args:
        size: bytes.
        born, dies: first and last moment, both counted.
        answer: whether the program gives it out.
    """

    size: int
    born: int
    dies: int
    answer: bool = False

    def meets(self, other: "Buffer") -> bool:
        """Whether both are needed at one moment."""
        return self.born <= other.dies and other.born <= self.dies


@dataclass(slots=True)
class Timeline:
    """Buffers of a whole program while it is gone through.

    Args:
        clock: the moment.
        buffers: found so far.
    """

    clock: int = 0
    buffers: list[Buffer] = field(default_factory=list[Buffer])

    def new(self, size: int) -> Buffer:
        """Add a buffer that is born now."""
        made = Buffer(size, self.clock, self.clock)
        self.buffers.append(made)
        return made

    def run(self, body: Body, given: Sequence[Buffer | None], donated: Mapping[int, int] | None = None) -> "Run":
        """Go through a body.

        Args:
            body: of it.
            given: where its parameters lie; None is memory that is not the program's own.
            donated: operations that are written into the memory of parameters, by those.
        """
        donated = donated or {}
        body = with_copies(body, donated)
        places = dict(zip(body.parameters, given, strict=True))
        homes = {result: place for at, result in donated.items() if result != at and (place := places[at]) is not None}
        run = Run(self, body, kernels_of(body), places, homes)
        run.through()
        return run


@dataclass(slots=True)
class Run:
    """One way through a body.

    Args:
        time: of the whole program.
        body: of it.
        kernels: of the body.
        given: where its parameters lie.
        homes: memory of parameters that results are written into, by those.
        places: where each operation's results lie.
        read: by what each operation was read, and when.
    """

    time: Timeline
    body: Body
    kernels: dict[int, Kernel]
    given: dict[int, Buffer | None]
    homes: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    places: dict[int, list[Buffer | None]] = field(default_factory=dict[int, "list[Buffer | None]"])
    read: dict[int, dict[int, int]] = field(default_factory=dict[int, "dict[int, int]"])

    @property
    def returned(self) -> list[Buffer | None]:
        """Where what it gives back lies."""
        return [self.places[at][0] for at in self.body.returns]

    def through(self) -> None:
        """Go through the operations in the compiler's order."""
        order = ordered(self.body, self.kernels)
        last = self._last(order)
        for at in order:
            self.time.clock += 1
            self.body.effort.spend()
            self.places[at] = self._place(at, last)
            for one in self._reads(at):
                self._keep(one)
                if at in self.kernels:
                    self.read.setdefault(self._owner(one), {})[at] = self.time.clock
        self.time.clock += 1
        for at in self.body.returns:
            self._keep(at)

    def _keep(self, at: int) -> None:
        for place in self.places[at]:
            if place is not None:
                place.dies = max(place.dies, self.time.clock)

    def _reads(self, at: int) -> list[int]:
        return self.kernels[at].reads(self.body) if at in self.kernels else list(self.body.ops[at].operands)

    def _last(self, order: Sequence[int]) -> dict[int, int]:
        """Return for each operation the last one that reads it, itself or through views; -1 for the end."""
        last: dict[int, int] = {}
        for at in order:
            for one in self._reads(at):
                last[self._owner(one)] = at
                last[one] = at
        for at in self.body.returns:
            last[self._owner(at)] = last[at] = -1
        return last

    def _owner(self, at: int) -> int:
        return owner_of(self.body, self.kernels, at)

    def _place(self, at: int, last: dict[int, int]) -> list[Buffer | None]:
        op = self.body.ops[at]
        if at in self.given:
            return [self.given[at]]
        if op.name == "constant":
            return [None]
        if op.name == "part":
            return [self.places[op.operands[0]][op.attributes["index"][0]]]
        if at not in self.kernels:
            return list(self.places[op.operands[0]])
        if op.name == "while":
            return self._loop(op, last)
        if at in self.homes:
            return [self._home(at, last)]
        if op.name == "sort" and len(set(op.operands)) == len(op.operands):
            free = [self._free(one, at, size, last) for one, size in zip(op.operands, op.parts, strict=True)]
            return [self.time.new(size) if place is None else place for place, size in zip(free, op.parts, strict=True)]
        if len(op.parts) == 1:
            for one in self.kernels[at].shared(self.body):
                place = self._free(one, at, op.parts[0], last)
                if place is not None:
                    return [place]
        return [self.time.new(size) for size in op.parts]

    def _home(self, at: int, last: dict[int, int]) -> Buffer:
        """Return where what is written into an argument's memory lies: in an operand's place where that lies there too."""
        home, kernel, size = self.homes[at], self.kernels[at], self.body.ops[at].parts[0]
        if not any(self.places[one][0] is home for one in kernel.reads(self.body)):
            for one in kernel.shared(self.body):
                place = self._free(one, at, size, last)
                if place is not None and not place.meets(home):
                    self.time.buffers = [other for other in self.time.buffers if other is not place]
                    return place
        return Buffer(size, self.time.clock, self.time.clock)

    def _free(self, one: int, at: int, size: int, last: dict[int, int]) -> Buffer | None:
        """Return the memory of an operand where nothing needs it after an operation whose result has its size."""
        place, owner = self.places[one][0], self._owner(one)
        free = place is not None and last.get(owner) == at and last.get(one) == at and owner not in self.given
        return place if free and place is not None and place.size == size and self.body.ops[owner].name != "part" else None

    def _loop(self, op: Op, last: dict[int, int]) -> list[Buffer | None]:
        """Go through a loop: what it changes lies in one buffer, in that of its first value where nothing else needs it."""
        (inner,) = op.bodies
        carried: list[Buffer | None] = []
        (loop,) = (at for at, one in self.body.ops.items() if one is op)
        for i, (at, size) in enumerate(zip(op.operands, op.parts, strict=True)):
            place = self.places[at][0]
            self.body.effort.spend(len(carried))
            changes = inner.returns[i] != inner.parameters[i]
            alone = not any(place is other for other in carried)
            owned = (
                place is not None
                and self._owner(at) not in self.given
                and alone
                and last.get(self._owner(at)) == loop
            )
            carried.append(place if not changes or owned else self.time.new(size))
        start, before = self.time.clock, len(self.time.buffers)
        run = self.time.run(inner, carried)
        fresh = self.time.buffers[before:]
        for i, (place, made) in enumerate(zip(carried, run.returned, strict=True)):
            self.body.effort.spend(len(self.time.buffers))
            if place is None or inner.returns[i] == inner.parameters[i] or made is place:
                continue
            if made is None or not any(
                made is one for one in fresh
            ):  # what was there before the loop, or twice: copied at its end
                continue
            fresh = [one for one in fresh if one is not made]
            readers = run.read.get(inner.parameters[i], {})
            ended = max(readers.values(), default=start)
            writer = run.kernels.get(inner.returns[i])
            shared = writer is not None and inner.parameters[i] in writer.shared(inner) and readers.get(writer.at) == ended
            late = ended > made.born or (ended == made.born and not shared)
            before_it = all_before(run.body, run.kernels, set(readers), inner.returns[i], inner.parameters[i])
            if late or not before_it:  # read as it was: it is copied at the start
                self.time.buffers.append(Buffer(place.size, start, ended))
            self.time.buffers = [one for one in self.time.buffers if one is not made]
        for place in carried:
            if place is not None:
                place.dies = max(place.dies, self.time.clock)
        return carried
