"""Published runs are predicted without anything of their own source, and files of other people are answered or refused."""

import csv
import io
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from advisor.cost import columns_of, known_predictor, labels_of
from advisor.cost.silicon import silicon_of
from catalog import accelerator
from catalog.measurements import measurements_text
from core.errors import BadInput
from intake.published import read_runs
from services import accuracy as service
from services.accuracy import Accuracy, Judged, accuracy, divided, observations_of
from tests.unit.intake.published.tables import SERVING, TRAINING, table

KNOWN_ID = "dgxcj-pax-gpt3-175b-fp8-n2048"


@cache
def of_the_catalog() -> Accuracy:
    return accuracy(None)


@cache
def without_their_chips() -> Accuracy:
    return accuracy(None, unseen_chips=True)


def of(path: Path, text: str) -> Accuracy:
    (path / "rows.csv").write_text(text, encoding="utf-8")
    return accuracy(path / "rows.csv")


def lines_of(identity: str) -> str:
    head, _, rest = measurements_text().partition("\n")
    return "\n".join((head, *(line for line in rest.splitlines() if line.startswith(f"{identity},")))) + "\n"


def judged(found: Accuracy, identity: str) -> Judged:
    return next(one for one in found.judged if one.id == identity)


def known_prediction(text: str) -> tuple[float, float]:
    """Return the rate and the sigma that the shipped coefficients, which hold every source, say for the only run of a table."""
    (run,) = read_runs(text)
    assert run.setup is not None
    assert run.seconds is not None
    assert run.metric is not None
    chip = accelerator(run.setup.accelerator)
    silicon, setup = silicon_of(chip, run.setup.dtype, run.group == "inference"), divided(run.setup)
    assert not isinstance(silicon, str)
    told = known_predictor(run.group == "training").predict(
        columns_of([(setup, silicon)]), labels_of(setup, silicon, run.grade)
    )
    return run.metric.value * run.seconds / float(told.seconds[0]), float(told.sigma[0])


@pytest.mark.parametrize("row", [TRAINING, SERVING], ids=["training", "serving"])
def test_a_run_of_a_new_source_is_predicted_with_all_coefficients(tmp_path: Path, row: dict[str, str]) -> None:
    (run,) = of(tmp_path, table(row)).judged
    predicted, sigma = known_prediction(table(row))
    assert run.predicted == pytest.approx(predicted)
    assert run.sigma == pytest.approx(sigma)
    assert run.error == pytest.approx(np.log(run.predicted / run.measured))


def test_a_run_of_a_known_source_is_predicted_without_it(tmp_path: Path) -> None:
    text = lines_of(KNOWN_ID)
    (run,) = read_runs(text)
    assert run.metric is not None
    planted = of(tmp_path, text.replace(KNOWN_ID, "planted"))
    left_out, with_it = judged(of_the_catalog(), KNOWN_ID).predicted, known_prediction(text)[0]
    assert planted.judged[0].predicted == pytest.approx(left_out, rel=0.03)
    assert abs(planted.judged[0].predicted / left_out - 1) < abs(with_it / left_out - 1)


def test_what_a_known_source_is_said_to_have_measured_does_not_move_its_prediction(tmp_path: Path) -> None:
    text = lines_of(KNOWN_ID)
    (run,) = read_runs(text)
    assert run.metric is not None
    planted = _row(text) | {"metric": run.metric.name}
    rows = [planted | {"id": f"times {factor}", "value": str(run.metric.value * factor)} for factor in (1, 3)]
    once, thrice = of(tmp_path, table(*rows)).judged
    assert thrice.predicted == pytest.approx(once.predicted)
    assert thrice.measured == pytest.approx(3 * once.measured)


def _row(text: str) -> dict[str, str]:
    head, line = text.splitlines()[:2]
    assert '"' not in line
    return dict(zip(head.split(","), line.split(","), strict=True))


def test_rows_of_the_catalog_are_told_as_they_are_without_a_file(tmp_path: Path) -> None:
    found = of(tmp_path, lines_of(KNOWN_ID))
    assert found.judged == (judged(of_the_catalog(), KNOWN_ID),)


def test_every_run_is_predicted_or_refused_and_counted() -> None:
    found = of_the_catalog()
    assert len(found.judged) + len(found.refused) == len(read_runs(measurements_text()))
    assert sum(score.rows for score in found.scores) == len(found.judged) == sum(score.rows for score in found.by_source)
    assert sum(score.refused for score in found.scores) == len(found.refused)
    assert [score.name for score in found.scores] == ["training", "inference", "other"]
    assert all(one.reason.strip() for one in found.refused)


def test_the_worst_runs_come_first() -> None:
    worst = [one.absolute_error for one in of_the_catalog().worst]
    assert worst == sorted((one.absolute_error for one in of_the_catalog().judged), reverse=True)[:10]


def test_bands_of_the_catalogs_runs_hold_three_to_nine_of_ten() -> None:
    training, inference, _ = of_the_catalog().scores
    assert 0.75 <= (training.coverage_80 or 0) <= 0.90
    assert 0.75 <= (inference.coverage_80 or 0) <= 0.90


def test_bands_of_runs_on_chips_that_were_left_out_hold_three_to_nine_of_ten() -> None:
    found = without_their_chips()
    training, inference, _ = found.scores
    assert 0.75 <= (training.coverage_80 or 0) <= 0.90
    assert 0.75 <= (inference.coverage_80 or 0) <= 0.90
    rows = sum(one.rows for one in found.capped)
    assert 0.75 <= sum(one.rows * (one.coverage_80 or 0) for one in found.capped) / rows <= 0.90
    assert max(Counter(one.accelerator for one in found.judged).values()) > 25
    assert found.capped[0].rows <= 25 * len({one.accelerator for one in found.judged if one.group == "training"})


def test_the_same_runs_are_predicted_without_their_chip_as_without_their_source() -> None:
    unseen, usual = without_their_chips(), of_the_catalog()
    assert [one.id for one in unseen.judged] == [one.id for one in usual.judged]
    assert unseen.refused == usual.refused
    assert (unseen.scores[0].mean_ape or 0) > (usual.scores[0].mean_ape or 1)


def test_what_a_chip_is_said_to_have_measured_does_not_move_its_prediction_without_it(tmp_path: Path) -> None:
    text = lines_of(KNOWN_ID)
    (run,) = read_runs(text)
    assert run.metric is not None
    planted = _row(text) | {"metric": run.metric.name}
    rows = [planted | {"id": f"times {factor}", "value": str(run.metric.value * factor)} for factor in (1, 3)]
    (tmp_path / "rows.csv").write_text(table(*rows), encoding="utf-8")
    once, thrice = accuracy(tmp_path / "rows.csv", unseen_chips=True).judged
    known = judged(without_their_chips(), KNOWN_ID)
    assert once.predicted == pytest.approx(thrice.predicted) == pytest.approx(known.predicted)
    assert once.sigma == pytest.approx(thrice.sigma) == pytest.approx(known.sigma)


def test_a_run_on_a_chip_without_published_runs_is_predicted_by_all_that_is_known(tmp_path: Path) -> None:
    text = table(TRAINING | {"accelerator": "mi300x"})
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    (run,) = accuracy(tmp_path / "rows.csv", unseen_chips=True).judged
    predicted, sigma = known_prediction(text)
    assert (run.predicted, run.sigma) == (pytest.approx(predicted), pytest.approx(sigma))


def test_times_to_a_target_are_not_learned_from() -> None:
    learned = {one.setup.sketch.name for one in observations_of("training")}
    assert learned
    assert len(observations_of("training")) < sum(one.group == "training" for one in of_the_catalog().judged)


def test_runs_keep_the_order_of_their_file(tmp_path: Path) -> None:
    rows = [TRAINING | {"id": f"run {place}", "task": ("train_pretrain", "infer_prefill")[place % 2]} for place in range(6)]
    assert [one.id for one in of(tmp_path, table(*rows)).judged] == [f"run {place}" for place in range(6)]


def test_one_run_is_predicted_alike_among_many(tmp_path: Path) -> None:
    many = of(tmp_path, table(*(TRAINING | {"id": str(place), "global_batch": str(8 * place)} for place in range(1, 40))))
    alone = of(tmp_path, table(TRAINING | {"id": "8"}))
    assert judged(many, "8").predicted == pytest.approx(alone.judged[0].predicted)
    assert judged(many, "8").sigma == pytest.approx(alone.judged[0].sigma)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"precision": "fp8", "accelerator": "A100"}, "no fp8 units"), ({"accelerator": "abacus"}, "'abacus'"),
    ({"value": "nan"}, "'nan'"),
    ({"task": "benchmark"}, "'benchmark'"), ({"n_devices": ""}, "n_devices"), ({"precision": "posit8"}, "no posit8 units"),
])  # fmt: skip
def test_a_run_that_cannot_be_predicted_is_refused_with_why(tmp_path: Path, changes: dict[str, str], reason: str) -> None:
    found = of(tmp_path, table(TRAINING | changes))
    assert found.judged == ()
    assert reason in found.refused[0].reason


@pytest.mark.parametrize(
    "name", ["TPU v5p", "tpu-v6e", "H100 SXM", "A100 80GB", "mi300x", "Gaudi 3", "B200", "L40S", "trn2", "V100-32GB"]
)
@pytest.mark.parametrize("framework", ["pytorch/fsdp", "jax/levanter", "torch_xla", "keras", "something new"])
def test_new_models_on_any_chip_and_framework_are_answered(name: str, framework: str, tmp_path: Path) -> None:
    (run,) = of(tmp_path, table(TRAINING | {"accelerator": name, "framework": framework})).judged
    assert run.predicted > 0
    assert 0.05 < run.sigma < 2.0


@pytest.mark.parametrize(("make", "said"), [
    (lambda path: path / "absent.csv", "No such file"), (lambda path: path, "Is a directory"),
    (lambda path: _written(path / "latin.csv", b"\xff\xfe\x00"), "not UTF-8 text"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, make, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        accuracy(make(tmp_path))


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_BYTES", 100)
    with pytest.raises(BadInput, match="at most 100"):
        of(tmp_path, table(TRAINING))


def test_the_table_in_the_docs_is_what_the_commands_say() -> None:
    page = (Path(__file__).parents[3] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    told = [[float(cell.strip(" %")) for cell in line.split("|")[3:9]] for line in page.splitlines()
            if line.startswith(("| another source", "| unseen chip", "| | inference"))]  # fmt: skip
    found = [score for one in (of_the_catalog(), without_their_chips()) for score in one.capped[:2]]
    figures = [(one.rows, one.median_ape, one.mean_ape, one.p90_ape, one.coverage_80, one.pair_order) for one in found]
    assert [row[0] for row in told] == [row[0] for row in figures]
    for row, figure in zip(told, figures, strict=True):
        assert row[1:] == pytest.approx([100 * (value or 0) for value in figure[1:]], abs=0.11)


def without_its_division(row: str) -> str:
    fields = next(csv.reader([row]))
    head = next(csv.reader([measurements_text().partition("\n")[0]]))
    told = io.StringIO()
    csv.writer(told).writerow("" if name in ("parallelism", "notes") else value for name, value in zip(head, fields, strict=True))
    return told.getvalue().strip()


def test_runs_whose_division_is_taken_away_are_predicted_nearly_as_well(tmp_path: Path) -> None:
    """Experts that nobody spread over chips were told four times as slow as they are."""
    head, *rows = measurements_text().splitlines()
    mixtures = [row for row in rows if next(csv.reader([row]))[11] and next(csv.reader([row]))[21]]
    stated = [one for one in of(tmp_path, "\n".join((head, *mixtures)) + "\n").judged if one.group == "training"]
    blind = of(tmp_path, "\n".join((head, *map(without_its_division, mixtures))) + "\n").judged
    errors = {one.id: abs(one.error) for one in blind}
    both = [(abs(one.error), errors[one.id]) for one in stated if one.id in errors]
    assert len(both) > 90
    told, untold = np.array(both).T
    assert np.median(untold) < np.median(told) + 0.06
    assert np.quantile(untold, 0.9) < 0.7


def test_mixtures_of_nearly_the_same_batch_are_told_nearly_the_same_speed(tmp_path: Path) -> None:
    row = {**TRAINING, "model": "DeepSeek-V3-671B", "params_b": "671", "arch_notes": "MLA; 1 shared expert; 37B active",
           "n_layers": "61", "d_model": "7168", "n_heads": "128", "n_kv_heads": "128", "d_ff": "2048", "vocab": "129280",
           "moe_experts": "256", "moe_topk": "8", "seq_len": "4096", "accelerator": "H100-SXM", "n_devices": "2048",
           "framework": "pytorch/nemo",
           "parallelism": "", "notes": "", "precision": "bf16", "metric": "tokens_per_s_per_device", "value": "800",
           "per_device_batch": ""}  # fmt: skip
    batches = ("14336", "15360", "16384")
    told = [judged(of(tmp_path, table({**row, "id": batch, "global_batch": batch})), batch).predicted for batch in batches]
    assert max(told) / min(told) < 1.3


@pytest.mark.parametrize(("changes", "said"), [
    ({"task": "infer_serve", "params_b": "70", "n_layers": "80", "d_model": "8192", "n_heads": "64", "d_ff": "28672",
      "n_devices": "1", "parallelism": "", "notes": "ISL 1024 OSL 256"}, "on chips with 79.1 GiB in all"),
    ({"global_batch": "8", "n_devices": "64", "parallelism": "dp64"}, "8 samples a step for 64 replicas"),
    ({"global_batch": "64", "per_device_batch": "32"}, "a per_device_batch of 32 on 8 replicas"),
])  # fmt: skip
def test_a_run_that_cannot_have_been_is_refused(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    found = of(tmp_path, table({**TRAINING, **changes}))
    assert not found.judged
    (refused,) = found.refused
    assert said in refused.reason


def test_a_batch_smaller_than_its_chips_is_divided_within_its_samples_where_nobody_said_how(tmp_path: Path) -> None:
    (run,) = of(tmp_path, table({**TRAINING, "global_batch": "8", "n_devices": "64", "parallelism": ""})).judged
    assert any(one.startswith("divided as ") for one in run.assumed)
    assert not any(" 0." in one for one in run.assumed)
