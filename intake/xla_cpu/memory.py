"""How much memory XLA's CPU compiler sets aside for a program: for what it is given, for what it gives, and beside these.

Source: `CompiledMemoryStats` of XLA, which `compiled.memory_analysis()` of JAX tells.
"""

from collections.abc import Sequence

from core.graph import SetAside
from intake.readers.stablehlo_program import Program
from intake.xla_cpu.buffers import ALIGNMENT, POINTER, Buffer, Timeline
from intake.xla_cpu.donated import donated_of, with_donated
from intake.xla_cpu.effort import Effort
from intake.xla_cpu.lower import lower


def planned(program: Program, effort: Effort | None = None) -> SetAside:
    """Return what is set aside for a program.

    Args:
        program: as it was read.
        effort: how much work it may be.

    Raises:
        NotFollowed: it has something that is not followed, or is too large.
    """
    effort = effort or Effort()
    body = lower(program, effort)
    donated = donated_of(program, body)
    body = with_donated(body, donated)
    time = Timeline()
    lent = {at: Buffer(body.ops[at].parts[0], 0, 0, answer=True) for at in donated}
    run = time.run(body, [lent.get(at) for at in body.parameters], donated)
    answers = run.returned
    for at in (one for one in answers if one is not None):
        at.answer = True
    given = sum(body.ops[at].parts[0] for at in body.parameters)
    table = POINTER * len(answers) if len(answers) > 1 else 0
    results = sum(body.ops[at].parts[0] for at in body.returns) + table
    written = [[place, *(made for made in run.places[donated[at]] if made not in (None, place))] for at, place in lent.items()]
    left = spared(time.buffers, effort, written)
    return SetAside(given, results, packed(left, effort), sum(place.size for place in lent.values()))


def spared(buffers: Sequence[Buffer], effort: Effort, written: Sequence[Sequence[Buffer]] = ()) -> list[Buffer]:
    """Return the buffers that need memory of their own: neither an answer nor put where an answer is not written yet.

    Args:
        buffers: all of a program, but for those written into arguments.
        effort: what is left of it.
        written: an argument and the answer that is written in its place: between them it serves too.
    """
    hosts: list[list[Buffer]] = []
    left: list[Buffer] = []
    for group in sorted((*([one] for one in buffers), *map(list, written)), key=lambda one: (-one[0].size, not one[0].answer)):
        effort.spend(sum(map(len, hosts)))
        if group[0].answer:
            hosts.append(group)
            continue
        (one,) = group
        host = next((held for held in reversed(hosts) if not any(one.meets(other) for other in held)), None)
        (left if host is None else host).append(one)
    return left


def packed(buffers: Sequence[Buffer], effort: Effort) -> int:
    """Return the bytes that buffers take when each is placed into the narrowest gap that is free while it lives.

    The compiler tries two orders, the largest first and the longest-lived first, and takes the better.

    Args:
        buffers: to be placed.
        effort: what is left of it.
    """
    largest = sorted(buffers, key=lambda one: (-one.size, one.born - one.dies))
    longest = sorted(buffers, key=lambda one: (one.born - one.dies, -one.size))
    return min(_placed(largest, effort), _placed(longest, effort))


def _placed(buffers: Sequence[Buffer], effort: Effort) -> int:
    placed: list[tuple[int, Buffer]] = []
    end = 0
    for one in buffers:
        effort.spend(len(placed))
        best, narrowest, at = -1, -1, 0
        for start, other in sorted(((start, other) for start, other in placed if one.meets(other)), key=lambda pair: pair[0]):
            gap = start - at
            if gap >= one.size and (best < 0 or gap < narrowest):
                best, narrowest = at, gap
            at = max(at, _aligned(start + other.size))
        best = at if best < 0 else best
        placed.append((best, one))
        end = max(end, best + one.size)
    return end


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT
