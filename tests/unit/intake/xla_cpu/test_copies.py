"""What is written into is copied first where something else needs it as it was."""

import pytest

from intake.xla_cpu.copies import COPY, with_copies
from intake.xla_cpu.hlo import Maker, Op


@pytest.mark.parametrize(("writers", "copies"), [(1, 0), (2, 1)])
def test_of_several_that_write_into_one_all_but_the_last_take_a_copy(writers, copies):
    make = Maker()
    whole = make.add(Op("tanh", (make.parameter((8, 16), "fp32"),), (8, 16), "fp32"))
    row, at = make.parameter((1, 16), "fp32"), make.parameter((), "int32")
    for _ in range(writers):
        rows = make.parameter((1, 16), "fp32") if _ else row
        made = make.add(Op("dynamic_update_slice", (whole, rows, at, at), (8, 16), "fp32"))
        make.body.returns = (*make.body.returns, made)
    assert [op.name for op in with_copies(make.body).ops.values()].count(COPY) == copies
