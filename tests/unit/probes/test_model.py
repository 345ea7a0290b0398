"""A model in pieces: every preset can be built, and what is random does not depend on how it is divided."""

from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from catalog import preset_names
from core.errors import BadInput
from core.workload import Workload
from intake import read_document
from probes.backends.reference import ReferenceOps
from probes.model import (
    Part,
    Piece,
    batch_of,
    cut,
    divide,
    flat_weights,
    model_of,
    output_bytes,
    parameter_count,
    slots_of,
    tables_first,
    untied,
    weights_of,
)
from probes.model_ends import layers_used
from probes.model_flat import stretches
from probes.model_wiring import Wiring

DECODER: dict[str, Any] = {
    "model": {"preset": "gpt2-small", "layers": 2, "width": 16, "heads": 2, "vocabulary": 40, "positions": 8},
    "length": 6,
}
LLAMA: dict[str, Any] = {
    "model": {"preset": "llama-3-8b", "layers": 3, "width": 16, "heads": 2, "kv_heads": 1, "hidden": 24, "vocabulary": 40},
    "length": 6,
}
DLRM: dict[str, Any] = {"model": {"preset": "dlrm-small", "bottom": [8, 4], "tables": 3, "rows": 20, "per_bag": 2, "top": [8, 6]}}
UNET: dict[str, Any] = {"model": {"preset": "unet", "base_channels": 4, "depth": 2, "classes": 3}, "image": 8}
MLP: dict[str, Any] = {"model": {"preset": "mlp", "inputs": 12, "hidden": [16, 8], "classes": 5}}


def workload(document: dict[str, Any]) -> Workload:
    return read_document({"schema": 1, "task": "train", "batch": 4} | document)


def pieces_of(document: dict[str, Any], batch: int = 4) -> tuple[Piece, ...]:
    return model_of(workload(document).blocks, batch)


def output(part: Part, inputs: dict[str, Any]) -> Any:
    """Run a part in float64."""
    wiring = Wiring(part)
    bound: dict[str, Any] = {slot.key: (slot.layer, {}) for slot in wiring.slots}
    for at, (_, array) in zip(stretches(wiring.slots), weights_of(part, 3), strict=True):
        bound[at.slot.key][1][at.array] = array.astype(np.float64)
    return wiring.forward(ReferenceOps(True), bound, inputs)


@pytest.mark.parametrize(
    "preset", ["gpt2-small", "bert-base", "vit-b16", "resnet-50", "mobilenet-v2", "unet", "dlrm-small", "mlp"]
)
def test_a_preset_has_the_parameters_that_its_workload_counts(preset: str) -> None:
    described = workload({"model": {"preset": preset}})
    assert parameter_count(Part(model_of(described.blocks, 4))) == described.parameter_count


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_built(name: str) -> None:
    pieces = model_of(workload({"model": {"preset": name}}).blocks, 2)
    assert pieces[-1].ends_in_loss
    assert pieces[0].source == "data"


def test_blocks_are_taken_as_kind_sizes_and_repeats_too() -> None:
    blocks = workload(LLAMA).blocks
    assert model_of([(b.kind, b.sizes, b.repeats) for b in blocks], 4) == model_of(blocks, 4)
    assert [piece.kind for piece in model_of(blocks, 4)] == ["token_ends", *["transformer_layer"] * 3, "token_ends"]


def test_the_weights_of_parts_end_to_end_are_those_of_the_whole() -> None:
    pieces = pieces_of(LLAMA)
    parts = divide(pieces, (1, 3))
    assert [(part.starts, part.ends) for part in parts] == [(True, False), (False, False), (False, True)]
    assert np.array_equal(np.concatenate([flat_weights(part, 3) for part in parts]), flat_weights(Part(pieces), 3))


def test_copies_of_a_layer_have_weights_of_their_own_and_seeds_differ() -> None:
    first, second = divide(pieces_of(LLAMA), (1, 2))[1], divide(pieces_of(LLAMA), (2, 3))[1]
    assert flat_weights(first, 3).shape == flat_weights(second, 3).shape
    assert not np.array_equal(flat_weights(first, 3), flat_weights(second, 3))
    assert not np.array_equal(flat_weights(first, 3), flat_weights(first, 4))


@pytest.mark.parametrize("document", [DECODER, DLRM, UNET], ids=["tokens", "tables", "images"])
def test_shares_of_a_batch_are_slices_of_it(document: dict[str, Any]) -> None:
    pieces = pieces_of(document)
    whole, low, high = batch_of(pieces, 5, 7), batch_of(pieces, 2, 7), batch_of(pieces, 3, 7, first_row=2)
    assert set(whole) == set(low) == set(high)
    for name, array in whole.items():
        axis = 1 if document is DLRM and array.ndim == 3 else 0
        assert np.array_equal(np.concatenate((low[name], high[name]), axis), array)


@pytest.mark.parametrize(("document", "at"), [(LLAMA, 1), (LLAMA, 4), (DLRM, 1), (DLRM, 3), (UNET, 1), (UNET, 5), (MLP, 1)])
def test_two_parts_compute_what_the_whole_does(document: dict[str, Any], at: int) -> None:
    pieces = pieces_of(document)
    data = batch_of(pieces, 4, 7)
    first, second = cut(pieces, at)
    middle = output(first, batch_of(first.pieces, 4, 7))
    assert float(output(second, batch_of(second.pieces, 4, 7) | {"x": middle})) == pytest.approx(
        float(output(Part(pieces), data))
    )


def test_tables_that_are_placed_first_leave_the_loss_as_it_is() -> None:
    pieces = pieces_of(DLRM)
    first, second = cut(tables_first(pieces), 1)
    assert [piece.kind for piece in first.pieces] == ["embedding_bag"]
    assert {slot.layer.kind for slot in slots_of(second.pieces)} == {"dense"}
    vectors = output(first, batch_of(first.pieces, 4, 7))
    whole = batch_of(pieces, 4, 7)
    rest = {"0_x": whole["x"], "4_labels": whole["4_labels"], "x": vectors}
    assert np.array_equal(batch_of(first.pieces, 4, 7)["x"], whole["1_x"])
    assert np.array_equal(batch_of(second.pieces, 4, 7)["0_x"], whole["x"])
    assert float(output(second, rest)) == pytest.approx(float(output(Part(pieces), whole)))


def test_each_end_of_a_block_is_told_the_layers_that_it_uses() -> None:
    sizes = next(block.sizes for block in workload(DECODER).blocks if block.kind == "token_ends")
    assert layers_used("token_ends", sizes, "begin") == {"tokens", "positions"}
    assert layers_used("token_ends", sizes, "finish") == {"tokens", "final_norm"}


def test_a_tied_model_is_not_cut_and_can_be_untied() -> None:
    pieces = pieces_of(DECODER)
    with pytest.raises(BadInput, match=r"two uses of the same weights \(tokens\).*tied: 0"):
        cut(pieces, 2)
    first, second = cut(untied(pieces), 2)
    assert parameter_count(first) + parameter_count(second) == parameter_count(Part(pieces)) + 40 * 16


def test_no_cut_goes_through_a_skip() -> None:
    pieces = pieces_of(UNET)
    assert [piece.keeps_input for piece in pieces] == [False, True, True, False, False, False]
    for at in (2, 3, 4):
        with pytest.raises(BadInput, match="skip connections"):
            cut(pieces, at)


@pytest.mark.parametrize("at", [0, 5, -1, 9])
def test_both_sides_of_a_cut_have_a_layer(at: int) -> None:
    with pytest.raises(BadInput, match=f"got a cut behind {at} of 5 layers; expected one behind 1 to 4"):
        cut(pieces_of(LLAMA), at)


def test_a_block_that_cannot_be_run_is_named() -> None:
    with pytest.raises(BadInput, match=r"got a block of kind moe_layer; expected one of class_head, .*transformer_layer"):
        model_of([("moe_layer", (), 2)], 4)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([], "a model without blocks"),
        ([("dense_tower", {"widths": (4, 8), "activation": "relu", "last_activation": "relu", "first": 1}, 1)], "dense_tower"),
        (
            [
                ("dense_tower", {"widths": (4, 8), "activation": "relu", "last_activation": "relu", "first": 1}, 1),
                ("class_head", {"inputs": 9, "classes": 2, "loss": "cross_entropy"}, 1),
            ],
            r"block 2 of the model, class_head, behind an output of shape \(4, 8\)",
        ),
        (
            [("class_head", {"inputs": 8, "classes": 2, "loss": "cross_entropy"}, 2)],
            "block 1 of the model, class_head",
        ),
    ],
)
def test_blocks_that_make_no_model_are_refused(blocks: list[Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        model_of(blocks, 4)


def test_a_batch_has_a_sample() -> None:
    with pytest.raises(BadInput, match="got a batch of 0"):
        pieces_of(MLP, 0)


def test_tables_are_only_moved_where_there_are_some() -> None:
    with pytest.raises(BadInput, match="0 blocks of tables"):
        tables_first(pieces_of(MLP))


def test_what_goes_between_pieces_is_told_in_bytes() -> None:
    pieces = pieces_of(DLRM)
    assert output_bytes(pieces, 10) == (*[4 * 10 * n for n in (4, 4 * 4, 4 + 6, 6)], 4)
    assert output_bytes(pieces_of(LLAMA), 2) == (*[4 * 2 * 6 * 16] * 4, 4)


def test_stretches_lie_end_to_end() -> None:
    found = stretches(slots_of(pieces_of(MLP)))
    assert [at.start for at in found] == [0, *accumulate(at.stop - at.start for at in found)][:-1]
    assert [at.shape for at in found] == [(12, 16), (16,), (16, 8), (8,), (8, 5), (5,)]
