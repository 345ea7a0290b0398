"""What goes to the library of kernels: large reductions with their neighbours, convolutions of many channels."""

import pytest

from intake.xla_cpu.hlo import Maker, Op
from intake.xla_cpu.library import calls, takes_convolution, takes_reduction


@pytest.mark.parametrize(
    ("shape", "name", "kind", "taken"),
    [
        ((64, 64), "tanh", "add", True),
        ((64, 63), "tanh", "add", False),  # under 4096 elements
        ((64, 64), "tanh", "and", False),
        ((64, 64), "transpose", "add", False),
    ],
)
def test_reductions_are_taken_by_size_and_kind(shape, name, kind, taken):
    make = Maker()
    at = make.add(Op(name, (make.parameter(shape, "fp32"),), shape, "fp32"))
    assert takes_reduction(make, at, kind) is taken


@pytest.mark.parametrize(
    ("channels", "out", "dilated", "taken"),
    [(17, 16, 0, True), (16, 16, 0, False), (16, 17, 0, True), (32, 16, 1, False)],
)
def test_convolutions_are_taken_by_their_channels(channels, out, dilated, taken):
    op = Op("convolution", (), (2, 8, 8, out), "fp32", {"dilated": (dilated,)})
    assert takes_convolution(op, (2, 8, 8, channels), (3, 3, channels, out)) is taken


def test_a_convolution_that_grows_its_image_is_not_taken():
    op = Op("convolution", (), (2, 9, 8, 32), "fp32", {"dilated": (0,)})
    assert not takes_convolution(op, (2, 8, 8, 32), (3, 3, 32, 32))


@pytest.mark.parametrize("read", [False, True])
def test_a_reduction_is_called_with_what_it_alone_reads(read):
    make = Maker()
    x = make.add(Op("tanh", (make.parameter((64, 64), "fp32"),), (64, 64), "fp32"))
    at = make.add(Op("reduce", (x, make.scalar("fp32")), (64,), "fp32", {"axes": (1,)}))
    make.body.returns = (at, x) if read else (at,)
    assert calls(make.body) == ({at: at} if read else {at: at, x: at})
