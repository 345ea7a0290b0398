"""A program's operations as the compiler has them: calls opened, loops with what they need, simpler arithmetic."""

from intake.readers.stablehlo_module import parse
from intake.xla_cpu.hlo import Body
from intake.xla_cpu.lower import lower


def _lowered(lines: str, given: str = "%x: tensor<8x16xf32>", returns: str = "tensor<8x16xf32>", functions: str = "") -> Body:
    text = f"module {{ func.func public @main({given}) -> {returns} {{ {lines} }} {functions} }}"
    return lower(parse(text.encode(), "m"))


def _names(body: Body) -> list[str]:
    return [op.name for op in body.ops.values() if op.name not in {"parameter", "constant", "broadcast_in_dim"}]


NUMBERS = """
    %low = stablehlo.constant dense<0.0> : tensor<8x16xf32>
    %high = stablehlo.constant dense<6.0> : tensor<8x16xf32>
"""


def test_calls_are_opened():
    twice = "func.func private @f(%y: tensor<8x16xf32>) -> tensor<8x16xf32> { %z = stablehlo.tanh %y : tensor<8x16xf32> "
    twice += "return %z : tensor<8x16xf32> }"
    lines = "%a = call @f(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> %b = call @f(%a) : (tensor<8x16xf32>) -> tensor<8x16xf32>"
    assert _names(_lowered(f"{lines} return %b : tensor<8x16xf32>", functions=twice)) == ["tanh", "tanh"]


def test_division_by_a_number_is_multiplication():
    assert _names(
        _lowered(f"{NUMBERS} %y = stablehlo.divide %x, %high : tensor<8x16xf32> return %y : tensor<8x16xf32>")
    ) == ["multiply"]  # fmt: skip


def test_the_least_of_a_number_and_the_greatest_of_another_is_a_clamp():
    lines = f"""{NUMBERS} %y = stablehlo.maximum %x, %low : tensor<8x16xf32>
    %z = stablehlo.minimum %high, %y : tensor<8x16xf32> return %z : tensor<8x16xf32>"""
    assert _names(_lowered(lines)) == ["clamp"]
    assert _names(_lowered(lines.replace("%high, %y", "%x, %y"))) == ["maximum", "minimum"]


def _loop(step: str) -> Body:
    lines = f"""
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:3 = stablehlo.while(%i = %zero, %h = %x, %spare = %x) : tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>
    cond {{
        %n = stablehlo.constant dense<5> : tensor<i32>
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
    }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        %unread = stablehlo.negate %spare : tensor<8x16xf32>
        {step}
        stablehlo.return %next, %new, %unread : tensor<i32>, tensor<8x16xf32>, tensor<8x16xf32>
    }}
    return %r#1 : tensor<8x16xf32>"""
    return _lowered(lines)


def test_what_does_not_change_within_a_loop_is_made_before_it():
    body = _loop("%t = stablehlo.tanh %x : tensor<8x16xf32> %new = stablehlo.add %h, %t : tensor<8x16xf32>")
    assert "tanh" in _names(body)
    (loop,) = (op for op in body.ops.values() if op.name == "while")
    assert _names(loop.bodies[0]) == ["add"]


def test_what_changes_stays_within_and_what_nobody_reads_is_not_carried():
    body = _loop("%new = stablehlo.tanh %h : tensor<8x16xf32>")
    (loop,) = (op for op in body.ops.values() if op.name == "while")
    assert _names(loop.bodies[0]) == ["tanh"]
    assert [body.ops[at].shape for at in loop.operands].count((8, 16)) == 1
