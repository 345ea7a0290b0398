"""The reduced model in an estimate: each block once as it was measured, and what every further layer adds."""

from dataclasses import replace

import pytest

from advisor import advise
from core.advice import Estimate
from core.probe import Measurement, Outcome, Probe
from core.reduced import REDUCED_MODEL, reduced_block
from core.workload import Workload
from tests.unit.advisor.cases import (
    block_measurements,
    block_probe,
    failure,
    kernel,
    kernels,
    measurement,
    question,
    tower,
)
from tests.unit.advisor.test_attached import estimate_of

WHOLE, FIRST, MIDDLE, FRAME = 0.025, 0.010, 0.020, 0.001


def probe(workload: Workload, batch: int | None = None) -> Probe:
    block = reduced_block(workload.blocks)
    assert block is not None
    return replace(block_probe(workload, block, "jax", batch), family="model")


def whole(seconds: float = WHOLE, batch: int | None = None, **more: object) -> Measurement:
    return measurement(probe(tower(), batch), seconds, **more)  # pyright: ignore[reportArgumentType]


def frame() -> Outcome:
    return kernel("step_frame", {"arrays": 4}, FRAME, "jax", mode="train")


def middle(seconds: float = MIDDLE, **more: object) -> list[Outcome]:
    return block_measurements(tower(), "jax", {"middle": seconds}, **more)


def asked(*outcomes: Outcome) -> Estimate:
    return estimate_of(advise(question(tower(), list(outcomes))))


def seconds_of(found: Estimate, block: str) -> float:
    return sum(share.seconds.mid for share in found.breakdown if share.block == block)


def test_a_step_is_the_reduced_model_its_further_layers_and_one_frame() -> None:
    found = asked(whole(), *middle(), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(WHOLE + 3 * MIDDLE + FRAME)
    assert found.step_time_s.tier == "measured"
    assert not found.missing or all("compile" in phrase for phrase in found.missing)


def test_its_slices_add_up_to_it_with_and_without_kernels() -> None:
    for more in ([], kernels("jax", bytes_per_s=4e9)):
        found = asked(whole(), *middle(), frame(), *more)
        assert found.step_time_s is not None
        assert sum(share.seconds.mid for share in found.breakdown) == pytest.approx(found.step_time_s.mid)


def test_what_repeats_keeps_its_own_time_and_the_rest_is_left_to_the_others() -> None:
    found = asked(whole(), *middle(), frame())
    assert seconds_of(found, "middle") == pytest.approx(4 * MIDDLE)
    assert seconds_of(found, "first") == pytest.approx(WHOLE - MIDDLE)
    assert any("by its FLOPs" in text for share in found.breakdown for text in share.seconds.evidence)


def test_blocks_that_claim_more_than_the_whole_are_cut_to_it() -> None:
    found = asked(whole(0.015), *middle(), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(0.015 + 3 * MIDDLE + FRAME)
    assert 0 < seconds_of(found, "first") < 0.001


def test_the_whole_is_believed_before_the_sum_of_its_blocks() -> None:
    found = asked(whole(), *block_measurements(tower(), "jax", {"first": FIRST, "middle": MIDDLE}), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(WHOLE + 3 * MIDDLE + FRAME)
    assert seconds_of(found, "first") == pytest.approx(WHOLE * FIRST / (FIRST + MIDDLE))


def test_blocks_at_this_batch_are_believed_before_a_whole_at_another() -> None:
    found = asked(whole(batch=32), *block_measurements(tower(), "jax", {"first": FIRST, "middle": MIDDLE}), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.mid == pytest.approx(FIRST + 4 * MIDDLE + FRAME)


def test_a_whole_at_another_batch_is_scaled_where_blocks_are_not_known() -> None:
    found = asked(whole(WHOLE / 2, batch=32), *middle(), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "interpolated"
    assert found.step_time_s.mid == pytest.approx(WHOLE + 3 * MIDDLE + FRAME)


def test_without_its_further_layers_the_whole_is_not_enough() -> None:
    found = asked(whole(), frame())
    assert found.step_time_s is None
    assert any("middle: not measured in jax" in phrase for phrase in found.missing)


def test_a_whole_that_failed_is_named() -> None:
    found = asked(failure(probe(tower())), *middle(), frame())
    assert found.step_time_s is None
    assert any("each block once: its probe failed at compile: it broke" in phrase for phrase in found.missing)


def test_a_whole_that_is_not_trusted_is_named_and_not_used() -> None:
    found = asked(whole(0.001, trusted=False, warnings=("150 % of peak",)), *middle(), frame())
    assert found.step_time_s is None
    assert any("each block once: a measurement was set aside (150 % of peak)" in phrase for phrase in found.missing)


def test_each_block_compiles_once_and_each_further_layer_again() -> None:
    found = asked(whole(compile_s=3.0), *middle(compile_s=1.0), frame())
    assert found.compile_s is not None
    assert found.compile_s.mid == pytest.approx(3.0 + 3 * 1.0)


def test_its_subject_is_the_reduced_model() -> None:
    assert (probe(tower()).subject, probe(tower()).family) == (REDUCED_MODEL, "model")


def test_what_failed_on_the_model_gets_no_figure_out_of_kernels() -> None:
    found = asked(failure(probe(tower())), frame(), *kernels("jax"))
    assert found.step_time_s is None
    assert asked(frame(), *kernels("jax")).step_time_s is not None


def test_blocks_that_were_all_measured_stand_where_the_model_failed() -> None:
    found = asked(failure(probe(tower())), *block_measurements(tower(), "jax", {"first": FIRST, "middle": MIDDLE}), frame())
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "measured"


def test_a_failure_after_a_measurement_is_told_with_the_older_figure() -> None:
    later = replace(failure(probe(tower()), "lost", "killed"), taken_at="2026-11-30T09:00:00Z")
    found = asked(whole(), *middle(), frame(), later)
    assert found.step_time_s is not None
    told = "each block once: its last probe failed at lost: killed; the figure is of 2026-11-29"
    assert told in found.missing


def test_a_part_that_the_roofline_gave_is_not_called_measured_and_the_whole_is() -> None:
    found = asked(whole(), *middle(), frame(), *kernels("jax", bytes_per_s=4e9))
    assert found.step_time_s is not None
    assert found.step_time_s.tier == "measured"
    first = next(share.seconds for share in found.breakdown if share.block == "first")
    assert first.tier == "transferred"
    assert first.sigma > found.step_time_s.sigma


def test_a_frame_that_matters_and_was_not_measured_is_the_usual_one_and_no_measurement() -> None:
    tiny = [whole(2e-6), *middle(1e-6)]
    found = asked(*tiny)
    assert found.step_time_s is not None
    assert found.step_time_s.mid > 2e-5
    assert found.step_time_s.tier == "datasheet"
    assert any("taken as what is usual" in phrase for phrase in found.missing)
    measured = asked(*tiny, frame())
    assert measured.step_time_s is not None
    assert measured.step_time_s.tier == "measured"
