"""What no chip undercuts: the arithmetic of a step at the dense peak, and a band that is cut there."""

from itertools import product

import pytest

import catalog
from advisor.datasheet import Datasheets
from advisor.search.passes import scaled
from core.advice import Estimate
from core.quantity import log_normal
from intake.understand import read_text
from tests.unit.advisor.cases import pool, runtime

CHIPS = tuple(
    key for key in catalog.accelerators() if catalog.accelerator(key).peak("bf16") and catalog.accelerator(key).memory_bytes_per_s
)
SAMPLED = ("unet", "resnet-50", "mobilenet-v2", "vit-b16", "mlp", "dlrm-small", "bert-base", "lstm-lm")


@pytest.mark.parametrize("task", ["train", "infer"])
@pytest.mark.parametrize("model", SAMPLED)
def test_nothing_is_told_to_be_faster_than_its_arithmetic_at_the_dense_peak(model: str, task: str) -> None:
    workload = read_text(f"{model}:{task}").workload
    asked = [(pool(key, count), catalog.accelerator(key)) for key in CHIPS for count in (1, 4)]
    sheets, seen = Datasheets(workload, asked), 0
    for (place, chip), name in product(asked, ("jax", "torch-eager")):
        told = sheets.estimate(runtime(name), place, chip)
        peak = chip.peak(workload.dtype)
        if isinstance(told, str) or peak is None:
            continue
        least_s = workload.flop_per_step / (place.count * peak) if workload.trains else told.lower_s
        assert told.step_time_s is not None
        assert least_s is not None
        assert told.step_time_s.low >= least_s * (1 - 1e-9), (chip.key, place.count, name)
        assert told.lower_s is not None
        assert told.lower_s <= told.step_time_s.mid * (1 + 1e-9)
        assert sum(share.seconds.mid for share in told.breakdown) == pytest.approx(told.step_time_s.mid)
        assert not workload.trains or _compute_s(told) >= least_s * (1 - 1e-9)
        assert told.utilisation is None or told.utilisation.high <= 1 + 1e-9
        seen += 1
    assert seen > len(CHIPS)


def _compute_s(told: Estimate) -> float:
    return sum(share.seconds.low for share in told.breakdown if share.term == "compute")


def test_a_band_is_cut_at_a_floor_and_not_moved() -> None:
    told = log_normal(10.0, 0.3, "published", "a page")
    assert told.at_least(told.low / 2) == told
    cut = told.at_least(9.0)
    assert (cut.low, cut.mid, cut.high, cut.evidence) == (9.0, 10.0, told.high, told.evidence)
    assert 0.5 * told.sigma < cut.sigma < told.sigma
    assert (told.at_least(11.0).low, told.at_least(11.0).mid) == (11.0, 11.0)


@pytest.mark.parametrize(
    ("arithmetic_s", "compute", "wire"), [(0.0, 6.0, 3.0), (6.0, 6.0, 3.0), (8.0, 8.0, 1.0), (12.0, 9.0, 0.0)]
)
def test_terms_add_up_with_no_less_of_compute_than_its_arithmetic(arithmetic_s: float, compute: float, wire: float) -> None:
    told = scaled({"compute": 2.0, "communication": 1.0, "launch": 0.0}, 9.0, arithmetic_s)
    assert told == pytest.approx({"compute": compute, "communication": wire})
