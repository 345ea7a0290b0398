"""Which operations XLA's CPU compiler hands to its library of kernels (YNNPACK), and what it hands over with them.

What goes into a library's call is computed there; what it reads is stored before. Calls begin at reductions and take in their
neighbours of over 4096 elements, up where nothing else reads them, down where there is one reader.

Sources (github.com/openxla/xla): backends/cpu/ynn_support.cc, backends/cpu/transforms/ynn_matcher.h and library_rewriter.cc.
"""

from intake.xla_cpu.hlo import Body, Maker, Op, Sizes

FEWEST = 4096
"""Elements from which an operation is worth a call; channels up to which a convolution is not."""
_FEW_CHANNELS = 16
_ONE = frozenset({
    "abs", "ceil", "convert", "cosine", "erf", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one", "logistic",
    "negate", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tanh", "tan",
})  # fmt: skip
_TWO = frozenset({"add", "divide", "maximum", "minimum", "multiply", "power", "subtract"})
_MOVED = frozenset({"broadcast_in_dim", "reshape"})
_TYPES = frozenset({"fp64", "fp32", "bf16", "int8", "uint8"})
_REDUCED = frozenset({"add", "maximum", "minimum"})
_NOT_BEHIND = frozenset({"transpose", "broadcast_in_dim"})
"""What a reduction that a library takes does not read."""


def takes_reduction(make: Maker, at: int, kind: str) -> bool:
    """Whether a reduction of something is the library's.

    Args:
        make: where it is.
        at: what is reduced.
        kind: name of the operation that reduces.
    """
    op = make[at]
    return kind in _REDUCED and op.dtype == "fp32" and op.elements >= FEWEST and op.name not in _NOT_BEHIND


def takes_convolution(op: Op, image: Sizes, kernel: Sizes) -> bool:
    """Whether a convolution is the library's: over images of two axes and many channels, which it makes no larger.

    Args:
        op: the convolution, channels last.
        image, kernel: shapes of its operands.
    """
    if op.dtype != "fp32" or len(op.shape) != 4 or op.attributes["dilated"][0] or max(image[-1], op.shape[-1]) <= _FEW_CHANNELS:
        return False
    return all(max(out, window) <= size for out, window, size in zip(op.shape[1:3], kernel[:2], image[1:3], strict=True))


def calls(body: Body) -> dict[int, int]:
    """Return for each operation inside a library's call the operation that the call gives out.

    Args:
        body: simplified.
    """
    users = body.users()
    inside: dict[int, int] = {}
    for at in reversed(list(body.ops)):
        op = body.ops[at]
        if (
            at in inside
            or op.name not in {"reduce", "reduce_window"}
            or op.others
            or not _is_large(body, at)
            or op.dtype != "fp32"
        ):
            continue
        if op.name == "reduce_window" and op.attributes.get("window_dimensions") != op.attributes.get("window_strides"):
            continue
        members, out = _grown(body, users, at, inside)
        inside.update(dict.fromkeys(members, out))
    for at, op in body.ops.items():
        if op.name in {"dot", "convolution"} and at not in inside:
            inside[at] = at
    return inside


def _grown(body: Body, users: dict[int, list[int]], start: int, taken: dict[int, int]) -> tuple[set[int], int]:
    members, out = {start}, start
    while True:
        before = len(members)
        body.effort.spend(before)
        for member in tuple(members):
            for operand in body.ops[member].operands:
                body.effort.spend()
                if operand in taken or operand in members or not _is_taken(body, operand):
                    continue
                body.effort.spend(len(users[operand]))
                if all(user in members for user in users[operand]):
                    members.add(operand)
        (only, *more) = users[out] or [-1]
        if not more and only >= 0 and only not in taken and _is_taken(body, only) and body.ops[only].name != "dot":
            members.add(only)
            out = only
        if len(members) == before:
            return members, out


def _is_large(body: Body, at: int) -> bool:
    op = body.ops[at]
    return op.elements >= FEWEST or any(body.ops[one].elements >= FEWEST for one in op.operands)


def _is_taken(body: Body, at: int) -> bool:
    """Whether a neighbour is computed in the call too."""
    op = body.ops[at]
    if op.name in _MOVED:
        return op.dtype in _TYPES
    if op.name == "dot":
        flags = op.attributes
        plain = not any(flags["turned"][:1]) and min(flags["m"][0], flags["n"][0]) > 1
        return op.dtype == "fp32" and plain and max(flags[name][0] for name in ("m", "k", "n")) >= 8
    if op.name == "convolution":
        image, kernel = (body.ops[one].shape for one in op.operands)
        return takes_convolution(op, image, kernel)
    typed = op.dtype in _TYPES and all(body.ops[one].dtype in _TYPES for one in op.operands)
    known = op.name in {1: _ONE, 2: _TWO}.get(len(op.operands), ())
    return typed and known and _is_large(body, at)
