"""State of optimizers, against what their own implementations allocate and against counts by hand."""

from itertools import starmap
from math import prod

import pytest

from core.optimizers import OPTIMIZER_SOURCES, state_bytes

SHAPES = (((64, 32), 1), ((64,), 2), ((16, 8, 3, 3), 1), ((1000, 24), 1))


def in_torch(make) -> int:
    """Bytes that an optimizer of PyTorch keeps after a step, without its step counters."""
    import torch

    made = [torch.nn.Parameter(torch.zeros(shape)) for shape, count in SHAPES for _ in range(count)]
    optimizer = make(torch, made)
    for one in made:
        one.grad = torch.ones_like(one)
    optimizer.step()
    kept = (value for state in optimizer.state.values() for value in state.values())
    return sum(value.numel() * value.element_size() for value in kept if isinstance(value, torch.Tensor) and value.numel() > 1)


@pytest.mark.parametrize(("optimizer", "make"), [
    ("sgd", lambda torch, made: torch.optim.SGD(made, lr=0.1)),
    ("momentum", lambda torch, made: torch.optim.SGD(made, lr=0.1, momentum=0.9)),
    ("adam", lambda torch, made: torch.optim.Adam(made)),
    ("adamw", lambda torch, made: torch.optim.AdamW(made)),
    ("adafactor", lambda torch, made: torch.optim.Adafactor(made)),
])  # fmt: skip
def test_it_is_what_torch_allocates(optimizer, make):
    assert state_bytes(optimizer, SHAPES) == in_torch(make)


def test_lion_keeps_half_of_what_adam_keeps():
    assert 2 * state_bytes("lion", SHAPES) == state_bytes("adam", SHAPES)


@pytest.mark.parametrize(("shape", "size"), [
    ((64, 64), 2 * (4096 + 4 * 16)),  # one scale of 4 bytes for each 256 elements, of two moments
    ((4097,), 2 * (4097 + 4 * 17)),
    ((4095,), 2 * 4 * 4095),  # below 4,096 elements a tensor keeps fp32
])  # fmt: skip
def test_eight_bit_adam_keeps_bytes_and_scales(shape, size):
    assert state_bytes("adamw-8bit", [(shape, 1)]) == size


def test_muon_leaves_vectors_tables_and_heads_to_adamw():
    matrix, table, vector = (64, 32), (1000, 24), (64,)
    assert state_bytes("muon", [(matrix, 1)]) == 4 * prod(matrix)
    assert state_bytes("muon", [(table, 1)], frozenset({1000})) == 8 * prod(table)
    assert state_bytes("muon", [(vector, 1)]) == 8 * 64


@pytest.mark.parametrize(("shape", "factors"), [
    ((64, 32), 64**2 + 32**2),
    ((1024, 1024), 2 * 1024**2),
    ((2048, 512), 2 * 1024**2 + 2 * 512**2),  # two blocks of 1,024 x 512
    ((1500, 1500), 2 * 2 * (1024**2 + 476**2)),  # four blocks
    ((300,), 300**2),
    ((16, 1, 1), 16**2),
])  # fmt: skip
def test_shampoo_keeps_factors_and_their_roots_of_each_block(shape, factors):
    assert state_bytes("shampoo", [(shape, 1)]) == 4 * (2 * prod(shape) + 2 * factors)


def test_a_scalar_has_state_too():
    assert {name: state_bytes(name, [((), 1)]) for name in ("adamw", "adafactor", "shampoo")} == {
        "adamw": 8, "adafactor": 4, "shampoo": 4 * (2 + 2),
    }  # fmt: skip


@pytest.mark.parametrize("optimizer", OPTIMIZER_SOURCES)
def test_equal_tensors_add_up(optimizer):
    one, three = starmap(lambda shape, count: state_bytes(optimizer, [(shape, count)]), [((128, 64), 1), ((128, 64), 3)])
    assert three == 3 * one


def test_an_unknown_optimizer_is_named_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"got optimizer 'adamx'; expected one of sgd, momentum"):
        state_bytes("adamx", [((2, 2), 1)])
