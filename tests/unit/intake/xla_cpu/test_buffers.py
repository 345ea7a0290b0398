"""When buffers live: from the kernel that writes them to the last that reads them, one place for what takes another's."""

from intake.xla_cpu.buffers import Timeline
from intake.xla_cpu.hlo import Body, Maker, Op

SIZES = (16, 16)
BYTES = 16 * 16 * 4


def _product(make: Maker, at: int) -> int:
    flags = {"m": (16,), "k": (16,), "n": (16,), "turned": (0, 0), "lead": (0,)}
    return make.add(Op("dot", (at, at), SIZES, "fp32", flags))


def _buffers(body: Body) -> list[tuple[int, int, int]]:
    time = Timeline()
    time.run(body, [None] * len(body.parameters))
    return [(one.size, one.born, one.dies) for one in time.buffers]


def test_a_buffer_lives_until_the_last_that_reads_it():
    make = Maker()
    x = make.parameter(SIZES, "fp32")
    first = _product(make, x)
    second = _product(make, first)
    make.body.returns = (_product(make, second),)
    assert _buffers(make.body) == [(BYTES, 2, 3), (BYTES, 3, 4), (BYTES, 4, 5)]


def test_what_is_done_to_each_element_is_done_in_place_but_not_in_an_argument():
    make = Maker()
    x = make.parameter(SIZES, "fp32")
    make.body.returns = (make.add(Op("tanh", (_product(make, x),), SIZES, "fp32")),)
    assert [size for size, _, _ in _buffers(make.body)] == [BYTES]
    make.body.returns = (make.add(Op("tanh", (x,), SIZES, "fp32")),)
    assert [size for size, _, _ in _buffers(make.body.without_dead())] == [BYTES]


def test_what_is_read_again_keeps_its_own_place():
    make = Maker()
    first = _product(make, make.parameter(SIZES, "fp32"))
    second = make.add(Op("tanh", (first,), SIZES, "fp32"))
    make.body.returns = (second, first)
    assert [size for size, _, _ in _buffers(make.body)] == [BYTES, BYTES]
