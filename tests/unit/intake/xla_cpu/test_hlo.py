"""Operations are made once, views and turns of them as few as can be, and what nothing needs is left out."""

from intake.xla_cpu.hlo import Maker, Op


def test_equal_operations_are_made_once():
    make = Maker()
    x, y = make.parameter((4, 8), "fp32"), make.parameter((4, 8), "fp32")
    assert make.add(Op("add", (x, y), (4, 8), "fp32")) == make.add(Op("add", (x, y), (4, 8), "fp32"))
    assert make.add(Op("add", (y, x), (4, 8), "fp32")) != make.add(Op("add", (x, y), (4, 8), "fp32"))
    assert x != y


def test_a_view_of_a_view_is_one_and_one_in_its_own_shape_none():
    make = Maker()
    x = make.parameter((4, 8), "fp32")
    assert make[make.reshape(make.reshape(x, (32,)), (8, 4))].operands == (x,)
    assert make.reshape(make.reshape(x, (32,)), (4, 8)) == x


def test_turning_moves_nothing_where_only_axes_of_one_element_change_places():
    make = Maker()
    x = make.parameter((4, 1, 8), "fp32")
    assert make[make.transpose(x, (1, 0, 2))].name == "reshape"
    turned = make.transpose(x, (2, 1, 0))
    assert make[turned].name == "transpose"
    assert make.transpose(turned, (2, 1, 0)) == x


def test_numbers_of_constants_alone_are_known_when_it_is_compiled():
    make = Maker()
    two = make.broadcast(make.scalar("fp32"), (4, 8), ())
    assert make.is_constant(make.add(Op("add", (two, two), (4, 8), "fp32")))
    assert not make.is_constant(make.add(Op("add", (two, make.parameter((4, 8), "fp32")), (4, 8), "fp32")))


def test_what_nothing_needs_is_left_out_and_arguments_stay():
    make = Maker()
    x, y = make.parameter((4,), "fp32"), make.parameter((4,), "fp32")
    kept = make.add(Op("tanh", (x,), (4,), "fp32"))
    make.add(Op("exponential", (x,), (4,), "fp32"))
    make.body.returns = (kept,)
    assert set(make.body.without_dead().ops) == {x, y, kept}


def test_bytes_of_each_result():
    assert Op("sort", (), (4, 8), "fp32", {}, (((4, 8), "int32"), ((3,), "bool"))).parts == (128, 128, 3)
