"""The timer: what is sampled, what is kept, what is told apart."""

from probes.case import Program
from probes.timer import WARM_CALLS, Stopwatch, sample_in_turn


class FakeClock:
    """A clock that only moves when a program runs."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def _watch(clock: FakeClock, costs_ns: list[int], depth: int = 1, *, compiles: bool = True) -> Stopwatch:
    taken = iter(costs_ns)
    last = costs_ns[-1]

    def run() -> None:
        clock.now += next(taken, last)

    return Stopwatch(Program(run, compiles), depth, clock)


def test_the_first_call_is_compilation_and_never_a_sample() -> None:
    clock = FakeClock()
    watch = _watch(clock, [5_000_000_000, 20_000_000])
    watch.first_call()
    watch.warm_up()
    sample_in_turn((watch,), 0.1, 3)
    timing = watch.timing()
    assert max(timing.samples_ns) == 20_000_000
    assert timing.compile_s is not None
    assert abs(timing.compile_s - 4.98) < 1e-9


def test_an_eager_program_has_no_compile_time() -> None:
    clock = FakeClock()
    watch = _watch(clock, [20_000_000], compiles=False)
    watch.first_call()
    watch.warm_up()
    sample_in_turn((watch,), 0.1, 3)
    assert watch.timing().compile_s is None


def test_short_calls_are_looped_until_a_sample_is_long_enough() -> None:
    clock = FakeClock()
    watch = _watch(clock, [1_000_000])
    watch.first_call()
    watch.warm_up()
    assert watch.loops >= 10
    sample_in_turn((watch,), 0.0, 1)
    assert watch.timing().samples_ns == (1_000_000,)


def test_warm_up_runs_until_calls_and_time_are_enough() -> None:
    clock = FakeClock()
    watch = _watch(clock, [1_000_000_000])
    watch.first_call()
    watch.warm_up()
    assert len(watch.warm) == WARM_CALLS


def test_programs_are_sampled_in_turn_so_that_drift_falls_on_both() -> None:
    clock = FakeClock()
    order: list[str] = []

    def program(name: str) -> Program:
        def run() -> None:
            order.append(name)
            clock.now += 20_000_000

        return Program(run, compiles=False)

    shallow, deep = Stopwatch(program("shallow"), 1, clock), Stopwatch(program("deep"), 3, clock)
    sample_in_turn((shallow, deep), 0.0, 3)
    assert order[2:] == ["shallow", "deep"] * 3


def test_every_sample_is_kept_also_the_slow_ones() -> None:
    clock = FakeClock()
    watch = _watch(clock, [20_000_000] * 12 + [900_000_000] + [20_000_000])
    watch.first_call()
    watch.warm_up()
    sample_in_turn((watch,), 0.0, 12)
    assert 900_000_000 in watch.timing().samples_ns
    assert len(watch.timing().samples_ns) == 12
