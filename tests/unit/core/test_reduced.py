"""The reduced model as data: each block once, in order, and back again."""

from dataclasses import replace

import intake
from core.reduced import REDUCED_MODEL, parts_of, reduced_block

BLOCKS = intake.read_text("resnet-50:train").workload.blocks


def test_a_reduced_model_holds_each_block_once_in_the_order_of_the_model() -> None:
    reduced = reduced_block(BLOCKS)
    assert reduced is not None
    parts = list(parts_of(dict(reduced.sizes)).values())
    assert [kind for kind, _ in parts] == [block.kind for block in BLOCKS]
    assert [sizes for _, sizes in parts] == [dict(block.sizes) for block in BLOCKS]


def test_its_work_is_that_of_its_parts_without_their_repeats() -> None:
    reduced = reduced_block(BLOCKS)
    assert reduced is not None
    assert (reduced.kind, reduced.repeats) == (REDUCED_MODEL, 1)
    assert reduced.parameter_count == sum(block.parameter_count for block in BLOCKS)
    assert reduced.flop_forward == sum(block.flop_forward for block in BLOCKS)
    assert reduced.flop_backward == sum(block.flop_backward for block in BLOCKS)


def test_more_than_a_hundred_parts_keep_their_order() -> None:
    many = tuple(replace(BLOCKS[0], name=str(i), sizes=(("batch", 4), ("width", i))) for i in range(120))
    reduced = reduced_block(many)
    assert reduced is not None
    assert [sizes["width"] for _, sizes in parts_of(dict(reduced.sizes)).values()] == list(range(120))


def test_blocks_of_different_batches_make_no_model() -> None:
    other = replace(BLOCKS[1], sizes=tuple((k, 3 if k == "batch" else v) for k, v in BLOCKS[1].sizes))
    assert reduced_block((BLOCKS[0], other)) is None


def test_no_blocks_make_no_model() -> None:
    assert reduced_block(()) is None
