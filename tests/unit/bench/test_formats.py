"""The bench of one model in four formats: what holds, what falls short, and a model that really goes through two of them."""

from pathlib import Path

import pytest
import torch

from bench.formats import CASES, FORMS, Row, apart, read_file, table


def test_a_row_holds_with_exact_parameters_and_flops_within_one_percent() -> None:
    assert Row("llama", "pt2", 10, 10, 1009, 1000).holds
    assert not Row("llama", "pt2", 10, 10, 1011, 1000).holds
    assert not Row("llama", "pt2", 11, 10, 1000, 1000).holds
    assert not Row("llama", "pt2", 0, 0, 1000, 1000).holds


@pytest.mark.parametrize(("form", "holds"), [("onnx_old", True), ("onnx", False), ("pt2", False), ("stablehlo", False)])
def test_only_the_older_exporter_may_refuse_a_model(form: str, holds: bool) -> None:
    assert Row("llama", form, fault="UnsupportedOperatorError").holds is holds


def test_formats_are_as_far_apart_as_their_extremes() -> None:
    rows = [Row("a", "pt2", flop=90, flop_all=100), Row("a", "onnx", flop=100, flop_all=200), Row("b", "pt2", flop=1, flop_all=1)]
    assert apart(rows, "a") == (pytest.approx(0.1), pytest.approx(0.5))
    assert apart([Row("a", "pt2", fault="x")], "a") == (1.0, 1.0)


def test_the_table_tells_a_refusal_from_a_failure() -> None:
    told = table([Row("bert", "onnx_old", fault="no such operator"), Row("bert", "onnx", fault="no such operator")])
    assert [line.split(": ")[0].split()[-1] for line in told.splitlines()[1:]] == ["exporter", "SHORT"]


def test_every_case_is_of_another_family_and_every_form_is_named() -> None:
    assert len({case.kind for case in CASES}) == len(CASES) >= 6
    assert FORMS[0] == "config"


def test_a_model_that_is_exported_is_counted_by_hand(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4, bias=False))
    torch.export.save(torch.export.export(net, (torch.zeros(3, 8),)), tmp_path / "m.pt2")
    parameters, products, whole = read_file("pt2", tmp_path / "m.pt2")
    assert (parameters, products) == (8 * 16 + 16 + 16 * 4, 2 * 3 * (8 * 16 + 16 * 4))
    assert whole > products
