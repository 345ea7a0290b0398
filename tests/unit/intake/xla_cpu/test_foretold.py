"""What is told of the compiler and a program: bytes where it is followed, and else why not, whatever the program is."""

import pytest

from core.graph import SetAside
from intake.readers.stablehlo_module import parse
from intake.xla_cpu.effort import MOST_STEPS, Effort
from intake.xla_cpu.foretold import COMPILER, foretold

F = "tensor<8x16xf32>"
COUNT = "stablehlo.constant dense<3> : tensor<i32>"


def _told(lines: str, given: str = f"%x: {F}", returns: str = F, functions: str = "", attributes: str = "", left: int = 10**6):
    text = f"module @m {attributes} {{ func.func public @main({given}) -> {returns} {{ {lines} }} {functions} }}"
    return foretold(parse(text.encode(), "m"), Effort(left))


def test_a_program_that_is_followed_is_told_in_bytes_with_the_compiler():
    told = _told(f"%y = stablehlo.tanh %x : {F} return %y : {F}")
    assert (told.compiler, told.arguments, told.silent) == (COMPILER, 1, "")
    assert told.memory == SetAside(512, 512, 0)
    assert told.memory.total_bytes == 1024


BRANCH = f"""%y = "stablehlo.if"(%p) ({{ stablehlo.return %x : {F} }}, {{ stablehlo.return %x : {F} }}) : (tensor<i1>) -> {F}
    return %y : {F}"""
LOOP = f"""%n = {COUNT}
    %r:2 = stablehlo.while(%i = %n, %h = %x) : tensor<i32>, {F} cond {{ CONDITION stablehlo.return %c : tensor<i1> }}
    do {{ stablehlo.return %i, %h : tensor<i32>, {F} }} return %r#1 : {F}"""
ARRAYS = f"""%z = stablehlo.compare LT, %h, %h : ({F}, {F}) -> tensor<8x16xi1> %s = stablehlo.slice %z [0:1, 0:1] :
    (tensor<8x16xi1>) -> tensor<1x1xi1> %c = stablehlo.reshape %s : (tensor<1x1xi1>) -> tensor<i1>"""
ONCE = """%one = stablehlo.constant dense<1> : tensor<i32>
    %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
RUNNING = f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
    %y = "stablehlo.reduce_window"(%x, %zero) <{{padding = dense<[[0, 0], [15, 0]]> : tensor<2x2xi64>,
    window_dimensions = array<i64: 1, 16>}}> ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> }}) : ({F}, tensor<f32>) -> {F} return %y : {F}"""
SAME = f"return %x : {F}"


@pytest.mark.parametrize(
    ("why", "asked"),
    [
        ("conditions", {"lines": BRANCH, "given": f"%p: tensor<i1>, %x: {F}"}),
        ("condition is computed of arrays", {"lines": LOOP.replace("CONDITION", ARRAYS)}),
        ("of one pass", {"lines": LOOP.replace("CONDITION", ONCE)}),
        ("running extremes", {"lines": RUNNING.replace("stablehlo.add", "stablehlo.maximum")}),
        ("bf16, which the compiler widens", {
            "lines": "%y = stablehlo.tanh %x : tensor<8xbf16> return %y : tensor<8xbf16>",
            "given": "%x: tensor<8xbf16>", "returns": "tensor<8xbf16>",
        }),
        ("outside the program", {"lines": f'%y = stablehlo.custom_call @mine(%x) : ({F}) -> {F} return %y : {F}'}),
        ("donated", {"lines": SAME, "given": f"%x: {F} {{jax.buffer_donor = true}}"}),
        ("several devices", {"lines": SAME, "attributes": "attributes {mhlo.num_partitions = 4 : i32}"}),
        ("sizes are open", {"lines": "return %x : tensor<?xf32>", "given": "%x: tensor<?xf32>", "returns": "tensor<?xf32>"}),
        ("cholesky is not followed", {
            "lines": "%y = stablehlo.cholesky %x : tensor<8x8xf32> return %y : tensor<8x8xf32>",
            "given": "%x: tensor<8x8xf32>", "returns": "tensor<8x8xf32>",
        }),
    ],
)  # fmt: skip
def test_what_is_not_followed_says_why_and_has_no_number(why, asked):
    told = _told(**asked)
    assert told.memory is None
    assert why in told.silent


def test_a_program_that_is_too_large_is_given_up():
    lines = " ".join(f"%{at + 1} = stablehlo.tanh %{at} : {F}" for at in range(200))
    told = _told(f"%0 = stablehlo.exponential %x : {F} {lines} return %200 : {F}", left=10_000)
    assert told.memory is None
    assert "too large" in told.silent


def test_calls_that_double_at_each_level_end_at_the_bound_of_work():
    functions = "".join(
        f"func.func private @f{at}(%y: {F}) -> {F} {{ %a = call @f{at + 1}(%y) : ({F}) -> {F} "
        f"%b = call @f{at + 1}(%a) : ({F}) -> {F} return %b : {F} }} "
        for at in range(40)
    )
    functions += f"func.func private @f40(%y: {F}) -> {F} {{ %z = stablehlo.tanh %y : {F} return %z : {F} }}"
    told = _told(f"%y = call @f0(%x) : ({F}) -> {F} return %y : {F}", functions=functions)
    assert "too large" in told.silent


def _hostile(kind: str, count: int) -> str:
    """A program of so many operations in a form that could cost the square of them."""
    if kind == "chain":
        lines = " ".join(f"%{at + 1} = stablehlo.add %{at}, %{at} : {F}" for at in range(count))
    elif kind == "star":  # each is read by every one behind it
        lines = " ".join(f"%{at + 1} = stablehlo.add %{at}, %{at // 2} : {F}" for at in range(count))
    elif kind == "views":
        lines = " ".join(f"%{2 * at + 1} = stablehlo.bitcast_convert %{2 * at} : ({F}) -> tensor<8x16xi32> "
                         f"%{2 * at + 2} = stablehlo.bitcast_convert %{2 * at + 1} : (tensor<8x16xi32>) -> {F}"
                         for at in range(count // 2))  # fmt: skip
    else:
        names = ", ".join(f"%i{at} = %0" for at in range(count))
        back = ", ".join(f"%i{(at + 1) % count}" for at in range(count))
        types = ", ".join([F] * count)
        lines = f"""%n = {COUNT} %r:{count + 1} = stablehlo.while(%k = %n, {names}) : tensor<i32>, {types} cond {{
            %m = {COUNT} %c = stablehlo.compare LT, %k, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1> }} do {{ stablehlo.return %k, {back} : tensor<i32>, {types} }}
            %{count} = stablehlo.add %r#1, %r#2 : {F}"""
    return f"func.func @main(%x: {F}) -> {F} {{ %0 = stablehlo.tanh %x : {F} {lines} return %{count} : {F} }}"


@pytest.mark.parametrize("kind", ["chain", "star", "views"])
def test_large_programs_of_hostile_forms_cost_steps_in_proportion(kind):
    spent: list[int] = []
    for count in (500, 1000):
        effort = Effort()
        assert foretold(parse(_hostile(kind, count).encode(), "m"), effort).memory is not None
        spent.append(MOST_STEPS - effort.left)
    assert 1.5 < spent[1] / spent[0] < 2.5


def test_values_that_change_places_in_a_loop_cost_their_square_and_end_at_the_bound_of_work():
    few, many = Effort(), Effort()
    assert foretold(parse(_hostile("carried", 500).encode(), "m"), few).memory is not None
    told = foretold(parse(_hostile("carried", 3000).encode(), "m"), many)
    assert "too large" in told.silent
    assert many.left < 0 < few.left
