"""Deliberately faulty kernels, each a real program with one mistake, through the worker and the verdict of a real probe.

`python -m bench.faults` runs every fault in every framework; here each fault runs once, in the framework that makes it soonest.
"""

import pytest

from bench.faults import MEANT_FOR, measure, processor
from bench.trial import Trial

pytestmark = pytest.mark.slow

CHOSEN = {
    "jax": ("honest", "constant folding", "loop-invariant hoisting", "zeros for inputs", "constant inputs", "bf16 for fp32",
            "tf32 for fp32", "throttled clock", "first call counted", "silent CPU fall-back"),
    "torch": ("honest", "unsynchronised", "one core for two", "neighbour noise", "hot cache", "GiB for GB",
              "silent CPU fall-back"),
    "tensorflow": ("honest", "dead code"),
}
CASES = [(framework, fault) for framework, faults in CHOSEN.items() for fault in faults]


@pytest.fixture(scope="module")
def trials() -> dict[str, tuple[Trial, ...]]:
    """Measure all, a minute or more: kernels are compiled, warmed and sampled as in a run, since gates judge real samples."""
    return {framework: measure([framework], faults) for framework, faults in CHOSEN.items()}


@pytest.mark.parametrize(("framework", "fault"), CASES, ids=[f"{fault} in {framework}" for framework, fault in CASES])
def test_a_fault_is_caught_by_its_gate_and_an_honest_kernel_passes(
    trials: dict[str, tuple[Trial, ...]], framework: str, fault: str
) -> None:
    if fault == "one core for two" and (processor().cores or 1) < 2:
        pytest.skip("one core is all that there is")
    found = [trial for trial in trials[framework] if trial.fault == fault]
    assert found
    assert [trial.said for trial in found if not trial.right] == []


def test_claims_units_and_recorded_clocks_are_judged_without_a_framework() -> None:
    assert [trial for trial in measure(["plain"]) if not trial.right] == []


def test_every_fault_is_made_somewhere() -> None:
    made = {fault for faults in CHOSEN.values() for fault in faults} | {trial.fault for trial in measure(["plain"])}
    assert made == set(MEANT_FOR)
