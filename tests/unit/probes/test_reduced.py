"""Wiring: which blocks make a model together, and what it takes from the data."""

import pytest

import catalog
import intake
from core.reduced import reduced_block
from core.workload import Block
from intake import make_block
from probes.reduced import ReducedModel, can_be_wired

ONE_PASS = [(name, task) for name in catalog.preset_names() for task in catalog.preset(name).tasks
            if len({block.size("length") for block in intake.read_text(f"{name}:{task}").workload.blocks
                    if "length" in dict(block.sizes)}) <= 1]


def _wired(*blocks: Block) -> bool:
    reduced = reduced_block(blocks)
    assert reduced is not None
    return can_be_wired(reduced)


def _model(text: str) -> ReducedModel:
    reduced = reduced_block(intake.read_text(text).workload.blocks)
    assert reduced is not None
    return ReducedModel(dict(reduced.sizes))


@pytest.mark.parametrize(("name", "task"), ONE_PASS)
def test_every_preset_that_runs_in_one_pass_can_be_wired(name: str, task: str) -> None:
    assert _wired(*intake.read_text(f"{name}:{task}").workload.blocks)


def test_prefill_and_decoding_are_two_passes_and_no_model() -> None:
    assert not _wired(*intake.read_text("gpt2-small:infer").workload.blocks)


def test_towers_of_different_widths_cannot_follow_each_other() -> None:
    first = make_block("dense_tower", "first", {"batch": 4, "widths": (8, 16), "first": 1}, 1, "fp32")
    fits = make_block("dense_tower", "second", {"batch": 4, "widths": (16, 8)}, 1, "fp32")
    not_so = make_block("dense_tower", "second", {"batch": 4, "widths": (12, 8)}, 1, "fp32")
    assert _wired(first, fits)
    assert not _wired(first, not_so)


def test_a_stage_up_needs_what_a_stage_down_kept() -> None:
    blocks = intake.read_text("unet:train").workload.blocks
    without_the_way_down = tuple(block for block in blocks if not block.name.startswith("down"))
    assert _wired(*blocks)
    assert not _wired(*without_the_way_down)


def test_a_model_takes_its_labels_and_row_numbers_from_the_data_and_nothing_that_its_parts_make() -> None:
    model = _model("dlrm-small:train")
    assert set(model.inputs({})) == {"x", "part_01_x", "part_04_labels"}


def test_a_model_with_ends_starts_at_its_tokens_and_ends_in_its_loss() -> None:
    model = _model("bert-base:train")
    assert model.inputs({})["x"].kind == "token"
    assert model.ENDS_IN_LOSS
    assert model.first({})


def test_a_model_of_towers_alone_has_no_loss() -> None:
    tower = make_block("dense_tower", "tower", {"batch": 4, "widths": (8, 8)}, 1, "fp32")
    reduced = reduced_block((tower,))
    assert reduced is not None
    model = ReducedModel(dict(reduced.sizes))
    assert not model.ENDS_IN_LOSS
    assert not model.first({})


def test_a_model_has_the_weights_of_its_blocks() -> None:
    workload = intake.read_text("mobilenet-v2:train").workload
    counted = sum(layer.parameter_count for layer in _model("mobilenet-v2:train").layers({}).values())
    assert counted == sum(block.parameter_count for block in workload.blocks)


def test_nothing_follows_a_loss() -> None:
    first = make_block("dense_tower", "first", {"batch": 4, "widths": (8, 16), "first": 1}, 1, "fp32")
    head = make_block("class_head", "head", {"batch": 4, "inputs": 16, "classes": 10}, 1, "fp32")
    last = make_block("dense_tower", "last", {"batch": 4, "widths": (10, 4)}, 1, "fp32")
    assert _wired(first, head)
    assert not _wired(first, head, last)


def test_a_model_with_ends_has_no_other_loss() -> None:
    ends, *layers = intake.read_text("bert-base:train").workload.blocks
    width = layers[0].size("width")
    pixels = make_block(
        "pixel_head", "pixels", {"batch": 4, "height": 4, "width": 4, "in_channels": width, "classes": 5}, 1, "fp32"
    )
    assert _wired(ends, *layers)
    assert reduced_block((ends, *layers, pixels)) is None or not _wired(ends, *layers, pixels)


def test_few_weights_over_many_positions_are_not_small() -> None:
    def model(length: int) -> ReducedModel:
        sizes = {"layers": 2, "width": 8, "heads": 4, "kv_heads": 2, "head_width": 2, "hidden": 8, "vocabulary": 16}
        document = {"schema": 1, "task": "train", "batch": 1, "length": length, "model": {"preset": "llama-3-8b"} | sizes}
        reduced = reduced_block(intake.read_document(document).blocks)
        assert reduced is not None
        return ReducedModel(dict(reduced.sizes))

    assert model(16).is_small
    assert not model(9000).is_small
