"""The gates of the 12 rules on their own: each says what it is for, and nothing about what is honest."""

from types import ModuleType

import numpy as np
import pytest

from core.device import Device
from core.errors import WorkerError
from core.probe import Timing
from probes.case import Case, Program
from probes.claims import claim_doubt, share_of_chip, sparse_rows
from probes.contention import Bystanders, Usage
from probes.evidence import Evidence
from probes.gates import gate_of, judge
from probes.kernels import kernel_modules
from probes.platforms import assert_platform
from probes.precision import BITS, SIDE, precision_doubt, precision_of, read_cancellation
from probes.proof import captured_doubt, digest_doubts, digest_of, input_doubts, row_doubts, traffic_doubt, wait_doubt, work_doubt
from probes.steady import Warmth
from probes.timer import Stopwatch
from probes.trend import drift_doubt, kendall_z, relative_drift
from probes.units import bytes_doubt, mixed_up, rate_doubt

GENERATOR = np.random.Generator(np.random.PCG64(7))
RANDOM = GENERATOR.standard_normal((64, 64), dtype=np.float32)


def test_random_inputs_are_not_doubted() -> None:
    assert input_doubts({"x": RANDOM}) == []


@pytest.mark.parametrize(("array", "word"), [
    (RANDOM * 0, "zero"), (RANDOM * 0 + 0.5, "constant"), (RANDOM * np.float32(1e-42), "denormal"),
    (RANDOM * np.float32("nan"), "not finite"),
], ids=["zeros", "a constant", "denormals", "not a number"])
def test_inputs_that_no_model_has_are_named(array: np.ndarray, word: str) -> None:
    (said,) = input_doubts({"x": array})
    assert gate_of(said) == "inputs"
    assert word in said


def test_data_held_as_constants_is_named_and_a_small_table_is_not() -> None:
    assert gate_of(captured_doubt(8192, 8192)[0]) == "captured"
    assert captured_doubt(1000, 1000) == []
    assert captured_doubt(4096, 10**6) == []


def test_a_program_that_holds_its_work_at_both_depths_is_not_doubted() -> None:
    assert work_doubt([(1, 1000.0), (5, 5000.0)], 1000) == ""


@pytest.mark.parametrize("counted", [[(1, 1000.0), (5, 1000.0)], [(1, 0.0), (5, 0.0)], [(0, 5000.0), (1, 0.0)]])
def test_a_program_whose_copies_hold_no_work_is_named(counted: list[tuple[int, float]]) -> None:
    assert gate_of(work_doubt(counted, 1000)) == "work"


def test_what_cannot_be_counted_is_not_doubted() -> None:
    assert work_doubt([], 1000) == ""


def _chain(depth: int) -> tuple[Case, dict[str, np.ndarray], np.ndarray]:
    case = Case(kernel_modules()["matmul_chain"], {"n": 64}, depth, "forward", "none", "fp32")
    x, w = RANDOM, GENERATOR.standard_normal((64, 64), dtype=np.float32)
    output = x
    for _ in range(depth):
        output = output @ w / np.float32(8.0)
    return case, {"x": x, "w": w}, output


def test_rows_of_the_timed_output_that_are_right_are_not_doubted() -> None:
    assert row_doubts(*_chain(5)) == []


def test_a_timed_output_of_fewer_copies_is_named() -> None:
    case, given, _ = _chain(5)
    assert gate_of(row_doubts(case, given, _chain(4)[2])[0]) == "output"


def test_a_timed_output_of_rounded_inputs_is_named_by_its_precision() -> None:
    case, given, _ = _chain(1)
    rounded = [(array.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for array in (given["x"], given["w"])]
    (said,) = row_doubts(case, given, rounded[0] @ rounded[1] / np.float32(8.0))
    assert gate_of(said) == "precision"
    assert "tf32" in said


@pytest.mark.parametrize(("error", "name"), [(3e-7, "fp32"), (1e-5, "bf16_split"), (3e-4, "tf32"), (3e-3, "bf16"), (0.1, "less")])
def test_an_error_names_the_arithmetic_that_it_is_typical_of(error: float, name: str) -> None:
    assert precision_of(error) == name


def test_bfloat16_that_is_computed_in_float32_is_not_what_it_says() -> None:
    assert precision_doubt(3e-7, "bf16")
    assert precision_doubt(2e-3, "bf16") == []


@pytest.mark.parametrize(("bits", "name"), [(23, "fp32"), (16, "bf16_split"), (10, "tf32"), (7, "bf16")])
def test_cancellation_tells_how_many_bits_an_input_keeps(bits: int, name: str) -> None:
    left = np.array([2.0**-k if k <= bits else 0.0 for k in BITS])
    assert read_cancellation(np.tile(left[np.arange(SIDE) % len(BITS)][:, None], (1, SIDE))) == name


def test_a_call_that_returns_before_its_output_is_there_is_named() -> None:
    assert gate_of(wait_doubt([100_000] * 3, [4_000_000] * 3)[0]) == "unsynchronised"
    assert wait_doubt([4_000_000] * 3, [10_000] * 3) == []


def test_the_warm_up_asks_each_output_whether_it_was_there() -> None:
    now = [0]

    class Late:
        def block_until_ready(self) -> None:
            now[0] += 30_000_000

    def run() -> Late:
        now[0] += 20_000_000
        return Late()

    watch = Stopwatch(Program(run, compiles=False), 1, lambda: now[0])
    watch.warm_up()
    assert gate_of(wait_doubt(watch.warm, watch.late)[0]) == "unsynchronised"
    assert set(watch.warm) == {20_000_000}


def test_runtimes_that_give_the_same_output_are_not_doubted_and_one_that_does_not_is() -> None:
    same, other = digest_of(RANDOM), digest_of(RANDOM[::-1].copy())
    assert digest_doubts({"a": same, "b": digest_of(RANDOM * np.float32(1.0001)), "c": ()}, "fp32") == {}
    assert list(digest_doubts({"a": same, "b": same, "c": other}, "fp32")) == ["c"]
    assert list(digest_doubts({"a": same, "c": other}, "fp32")) == ["a", "c"]


def test_the_unit_that_was_taken_for_another_is_named() -> None:
    assert mixed_up(1e9, 2**30) == "GiB for GB"
    assert "GiB for GB" in bytes_doubt(2**30, 1e9)
    assert "GiB for GB" in rate_doubt(9.3132, 1e9, 10e9, 1.0)
    assert rate_doubt(10.0, 1e9, 10e9, 1.0) == ""
    assert bytes_doubt(1e9, 2e9).endswith("hold 2e+09")


def test_a_memory_kernel_that_counts_in_gibibytes_is_named() -> None:
    honest = kernel_modules()["memory_copy"]
    faulty = ModuleType("memory_copy")
    faulty.__dict__.update({**vars(honest), "traffic": lambda sizes, element: honest.traffic(sizes, element) / 2**30 * 1e9})
    array = np.ones(2**18, np.float32)

    def doubts(module: ModuleType) -> list[str]:
        return traffic_doubt(Case(module, {"bytes": 2**20}, 1, "forward", "none", "fp32"), {"x": array}, array, 4.0)

    assert doubts(honest) == []
    assert gate_of(doubts(faulty)[0]) == "units"


def _device(key: str, memory_bytes: int) -> Device:
    return Device("gpu:0", "gpu", key, key, memory_bytes, accelerator=key)


def test_a_peak_with_sparsity_is_no_denominator() -> None:
    board = _device("h100-sxm", 80 * 10**9)
    assert claim_doubt(989e12, board, "bf16") == ""
    assert gate_of(claim_doubt(1979e12, board, "bf16")) == "sparse"
    assert gate_of(claim_doubt(1500e12, board, "bf16")) == "peak"


def test_the_peak_of_a_chip_is_not_that_of_one_of_its_two_cores() -> None:
    core = _device("tpu-v7", 96 * 2**30)
    assert share_of_chip(core) == 0.5
    assert share_of_chip(_device("tpu-v7", 192 * 2**30)) == 1.0
    assert gate_of(claim_doubt(2307e12, core, "bf16")) == "per chip"
    assert claim_doubt(1153.5e12, core, "bf16") == ""


def test_the_catalog_holds_no_peak_with_sparsity() -> None:
    from catalog import accelerators

    assert sparse_rows(accelerators().values()) == ()


def test_a_platform_that_was_not_asked_for_is_refused() -> None:
    class OnProcessor:
        def platform(self) -> str:
            return "CPU"

    assert_platform("cpu", OnProcessor())
    with pytest.raises(WorkerError, match="silent fall-back"):
        assert_platform("gpu", OnProcessor())


def test_samples_that_slow_down_drift_and_noise_does_not() -> None:
    rising = [100 + i for i in range(20)]
    noisy = [100 + (i * 37) % 20 for i in range(20)]
    assert drift_doubt(rising).startswith("drift: samples became 17% slower")
    assert drift_doubt(noisy) == ""
    assert relative_drift(rising[::-1]) == pytest.approx(-relative_drift(rising))


def test_a_drift_needs_enough_samples_and_a_large_enough_change() -> None:
    assert drift_doubt([100, 200, 300]) == ""
    assert drift_doubt([1000 + i for i in range(20)]) == ""
    assert kendall_z([1.0] * 20) == 0.0


def test_a_long_row_of_samples_is_thinned_evenly() -> None:
    assert relative_drift([100 + i / 100 for i in range(4000)]) == pytest.approx(40 / 120, rel=0.05)


def test_a_warm_up_is_steady_when_its_last_five_blocks_agree() -> None:
    warmth = Warmth()
    for cost in (90, 40, 20, 20, 20, 20):
        warmth.add(cost * 1_000_000)
    assert not warmth.steady
    warmth.add(20_100_000)
    assert warmth.steady
    assert warmth.doubt(1) == ""


def test_a_warm_up_that_ends_unsteady_says_so() -> None:
    warmth = Warmth()
    for cost in (10, 14, 12, 20, 17):
        warmth.add(cost * 1_000_000)
    assert gate_of(warmth.doubt(3)) == "unsteady"


def test_short_calls_make_one_block_together() -> None:
    warmth = Warmth()
    for _ in range(50):
        warmth.add(1_000_000)
    assert warmth.blocks == [1_000_000.0] * 5


def test_one_thread_on_two_cores_is_narrow_also_beside_a_neighbour() -> None:
    watch = Bystanders()
    watch.add(Usage(0.0, 0.0, 0.0, ((1, 0.0), (2, 0.0))), Usage(4.0, 1.0, 2.0, ((1, 1.0), (2, 0.02))))
    assert gate_of(watch.narrow(2)) == "narrow"
    both = Bystanders()
    both.add(Usage(0.0, 0.0, 0.0, ((1, 0.0), (2, 0.0))), Usage(4.0, 2.0, 2.0, ((1, 1.0), (2, 0.9))))
    assert both.narrow(2) == ""


def test_bytes_that_fit_into_the_cache_are_no_rate_of_memory() -> None:
    timing = (Timing(1, 1, tuple([10_000_000] * 10)),)
    hot = judge(timing, 0, 2 * 10**6, None, None, large_aligned=False, cache_bytes=32 * 10**6)
    assert [gate_of(w) for w in hot.warnings] == ["hot"]
    assert judge(timing, 0, 10**9, None, None, large_aligned=False, cache_bytes=32 * 10**6).warnings == ()


def test_what_the_worker_saw_takes_the_trust_away() -> None:
    timing = (Timing(1, 1, tuple([10_000_000] * 10)),)
    seen = Evidence(doubts=("quarantined: inputs: 100% of x are zero; data of a model are not",))
    assert not judge(timing, 10**6, 0, None, None, large_aligned=False, evidence=seen).trusted


def test_a_large_product_whose_copies_hardly_cost_is_shared_work() -> None:
    timings = (Timing(1, 1, tuple([10_000_000] * 10)), Timing(5, 1, tuple([10_400_000] * 10)))
    result = judge(timings, 10**9, 0, None, None, large_aligned=True)
    assert not result.trusted
    assert "slope" in {gate_of(w) for w in result.warnings}


def test_samples_that_are_taken_again_keep_the_old_ones_among_the_warm_up() -> None:
    watch = Stopwatch(Program(lambda: None, compiles=False), 1)
    watch.samples, watch.warm = [5, 6], [9]
    watch.start_again()
    assert (watch.samples, watch.warm) == ([], [9, 5, 6])
