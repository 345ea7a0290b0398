"""What is told of a model beside its workload: optimizer states and adapters, by hand for a picture of known shapes."""

from dataclasses import replace

import pytest

from core.graph import Compiled, SetAside
from core.picture import Operation, ParameterShape, Picture, PictureBlock
from services import models

TABLE, MATRIX, VECTOR = ParameterShape((1000, 64), "", 1), ParameterShape((64, 128), "", 2), ParameterShape((64,), "", 3)
LOOKUP = Operation("embedding", (8, 64, 1000), "", 1, "forward", "aten.embedding")
PICTURE = Picture(
    "a model", "hand", (
        PictureBlock("embed", 1, (LOOKUP,), (TABLE,), 0, 0),
        PictureBlock("layers.*", 5, (), (MATRIX, VECTOR, ParameterShape((64, 64), "", 1, trained=False)), 0, 0),
    ),
    (("batch", 2), ("word", 4)), (), (), (), 0, 0, (), facts=(("parameters", 1), ("active_parameters", 7), ("sandbox_level", 3)),
)  # fmt: skip
WEIGHTS = 5 * (2 * 64 * 128 + 3 * 64)


@pytest.mark.parametrize(("name", "expected"), [
    ("sgd", 0),
    ("lion", 4 * (64_000 + WEIGHTS)),
    ("adamw", 8 * (64_000 + WEIGHTS)),
    ("adafactor", 4 * (1064 + 5 * (2 * 192 + 3 * 64))),
    ("muon", 8 * 64_000 + 5 * (4 * 2 * 64 * 128 + 8 * 3 * 64)),
])
def test_the_state_of_an_optimizer_counts_trained_parameters_of_all_repeats(name: str, expected: int) -> None:
    assert {one.name: one.size_bytes for one in models.optimizer_states(PICTURE)}[name] == expected


def test_optimizers_come_from_the_one_that_keeps_least() -> None:
    sizes = [one.size_bytes for one in models.optimizer_states(PICTURE)]
    assert sizes == sorted(sizes)


def test_adapters_are_on_the_trained_matrices_of_the_layers_alone() -> None:
    found = models.adapter(PICTURE, 8)
    assert found.parameter_count == 5 * 2 * 8 * (64 + 128)
    assert found.state_bytes == 8 * found.parameter_count


def test_the_memory_of_a_program_is_told_both_ways_with_where_it_comes_from() -> None:
    memory, other = SetAside(1, 2, 3), SetAside(1, 2, 9)
    seen = replace(PICTURE, compiled=Compiled("a compiler", 1, memory), program=other)
    compiled, general = models.program_memory(seen)
    assert (compiled.key, compiled.memory, general.key, general.memory) == ("compiled", memory, "any_target", other)
    assert compiled.title == "as a compiler lays it out"
    assert "neither compiled nor measured" in compiled.how
    assert "liveness" in general.how
    assert models.program_memory(PICTURE) == ()


def test_where_a_compiler_is_not_followed_the_reason_stands_in_place_of_the_figure() -> None:
    compiled, general = models.program_memory(replace(PICTURE, compiled=Compiled("a compiler", 1, None, "it branches")))
    assert (compiled.memory, compiled.how) == (None, "not told: it branches")
    assert (general.memory, general.how) == (None, "not told: sizes are open")


def test_facts_are_told_without_what_stands_elsewhere() -> None:
    assert models.facts(PICTURE) == (("active parameters", 7),)
    assert models.sandbox_of(PICTURE) == 3


@pytest.mark.parametrize("mark", ["gather", "custom", "unit_axis", "off_tile"])
def test_each_mark_has_its_meaning(mark: str) -> None:
    assert len(models.mark_meaning(mark)) > 10
