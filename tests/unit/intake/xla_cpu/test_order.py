"""Kernels run breadth first: all that is ready before what becomes so."""

from intake.xla_cpu.fusion import kernels_of
from intake.xla_cpu.hlo import Maker, Op
from intake.xla_cpu.order import ordered

SIZES = (16, 16)


def _product(make: Maker, at: int) -> int:
    flags = {"m": (16,), "k": (16,), "n": (16,), "turned": (0, 0), "lead": (0,)}
    return make.add(Op("dot", (at, at), SIZES, "fp32", flags))


def test_two_chains_run_side_by_side():
    make = Maker()
    x, y = make.parameter(SIZES, "fp32"), make.parameter(SIZES, "fp32")
    first = _product(make, x)
    second = _product(make, first)
    other = _product(make, y)
    last = _product(make, other)
    make.body.returns = (second, last)
    assert ordered(make.body, kernels_of(make.body)) == [x, y, first, other, second, last]


def test_views_stand_before_what_reads_them():
    make = Maker()
    x = make.parameter((256,), "fp32")
    seen = make.reshape(x, SIZES)
    end = _product(make, seen)
    make.body.returns = (end,)
    assert ordered(make.body, kernels_of(make.body)) == [x, seen, end]
