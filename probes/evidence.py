"""What a worker saw of the programs that it timed, beside their times: the material of the gates that need the framework."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.ops import DTYPE_BYTES
from probes.case import Case, Program
from probes.proof import (
    as_numpy,
    captured_doubt,
    digest_of,
    input_doubts,
    row_doubts,
    traffic_doubt,
    wait_doubt,
)

if TYPE_CHECKING:
    from probes.timer import Stopwatch


@dataclass(frozen=True, slots=True)
class Evidence:
    """Seen once for each program, outside any timed region.

    Args:
        counted: (depth, FLOPs that the compiled program holds by its framework's own count); a program that cannot be counted
            is not in it.
        digest: of the output of the deepest program at the timed size; empty when the runtime does not hand it out.
        doubts: one phrase each, its gate before the colon; those that begin with `quarantined` cannot be trusted.
    """

    counted: tuple[tuple[int, float], ...] = ()
    digest: tuple[float, ...] = ()
    doubts: tuple[str, ...] = ()


NOTHING_SEEN = Evidence()


@dataclass
class Examiner:
    """Collects evidence over the programs of one probe."""

    counted: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    digest: tuple[float, ...] = ()
    doubts: list[str] = field(default_factory=list[str])

    def see(self, case: Case, program: Program, output: object) -> None:
        """Look at a program that has just run for the first time, and at what it gave."""
        given = {name: as_numpy(array) for name, array in program.arguments().items()} if program.arguments else {}
        self.doubts.extend(input_doubts(given))
        if program.facts is not None:
            facts = program.facts()
            if facts.flop is not None:
                self.counted.append((case.depth, facts.flop))
            self.doubts.extend(captured_doubt(facts.constant_elements, sum(array.size for array in given.values())))
        got = as_numpy(output)
        if got is None or got.size < 2:
            return
        self.digest = digest_of(got)
        self.doubts.extend(row_doubts(case, given, got))
        self.doubts.extend(traffic_doubt(case, given, got, DTYPE_BYTES[case.dtype]))

    def warmed(self, watch: "Stopwatch") -> None:
        """Judge a warm-up: was the output there when calls returned, and did the last blocks agree?"""
        self.doubts.extend(wait_doubt(watch.warm, watch.late))
        said = watch.warmth.doubt(watch.depth)
        if said:
            self.doubts.append(said)

    def evidence(self) -> Evidence:
        """Return everything seen, each doubt once."""
        return Evidence(tuple(self.counted), self.digest, tuple(dict.fromkeys(self.doubts)))
