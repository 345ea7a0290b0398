"""What names tell: the module path and the phase from a location, and the role of an argument from what people called it.

JAX writes where an operation came from as a path, `jit(step)/transpose(jvp(Model))/layer_3/mlp/dot_general`; transformations
wrap parts of it, and control flow adds parts of its own.
"""

import re
from collections.abc import Sequence

_TRANSFORMS = re.compile(r"(?:transpose|jvp|vmap|rematted_computation|checkpoint|remat|pmap|shard_map|linearize)\((.*)\)")
_CALLS = re.compile(r"(?:jit|pjit|xla_call|core_call|xmap|named)\(.*\)|(?:branch_\d+_fun)|jit:?|closed_call:?")
_OWN = frozenset({
    "body", "cond", "checkpoint", "remat", "remat2", "rematted_computation", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "pjit", "core_call", "core_closed_call", "custom_lin", "cond_fun", "body_fun", "run_state",
    "named_call",     "_wrapped_jax_export_main", "shard_map", "call_exported", "unnamed",
})  # fmt: skip
_LOOPS = frozenset({"while", "scan"})
_MOST = 300

_OPTIMIZER = re.compile(r"opt_state|optimizer|optim\b|\bmu\b|\bnu\b|momentum|velocity|\btrace\b|\bema\b", re.IGNORECASE)
_STATISTICS = re.compile(r"batch_stats|running_(?:mean|var)|num_batches_tracked", re.IGNORECASE)
_BUFFER = re.compile(r"\bmean\b|\bvar\b|buffers?\b|\bconsts?\b|rope|mask_table", re.IGNORECASE)
_TRAINED = re.compile(
    r"param|weight|kernel|\bbias\b|embedding|\btheta\b|\bscale\b|\bvariables\b|\bstate\[|\bmodel[.\[]|\bw\d*\b|\bb\d+\b|lora_",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"^(args\[\d+\]|x|xs|y|batch|inputs?\w*|tokens?|ids|images?|labels?|targets?|rng|key|seed|mask|step|cache\b.*)(\W.*)?$",
    re.IGNORECASE,
)
STORED = "constant"


def parts_of(path: str) -> list[str]:
    """Return a path's parts; a slash inside brackets divides nothing."""
    found: list[str] = []
    depth, start = 0, 0
    for at, letter in enumerate(path):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth <= 0:
            found.append(path[start:at])
            start = at + 1
    return [*found, path[start:]]


def without_primitive(path: str) -> str:
    """Return a location's path without its last part, the primitive; with it where that is a call of its own."""
    parts = parts_of(path)
    return "/".join(parts[:-1]) if len(parts) > 1 else ""


def joined(outer: str, inner: str) -> str:
    """Return the path of something inside a function that was called from `outer`.

    Older versions of JAX write whole paths inside functions too: one that starts as the outer path does is kept.
    """
    if not inner or not outer:
        return inner or outer
    return inner if parts_of(inner)[0] == parts_of(outer)[0] else f"{outer}/{inner}"


def scope_of(path: str, loops: Sequence[int | None] = ()) -> str:
    """Return the module path of a location.

    Args:
        path: as JAX writes it.
        loops: of the loops around it, outermost first, which pass it is; None where passes are not told apart.
    """
    kept: list[str] = []
    seen = 0
    for part in parts_of(path):
        name = _bare(part)
        if name in _LOOPS:
            turn = loops[seen] if seen < len(loops) else None
            seen += 1
            if turn is not None:
                kept.extend([str(turn)] if kept else ["loop", str(turn)])
            continue
        if name and name not in _OWN and not _CALLS.fullmatch(name):
            kept.extend(one for one in name.replace("/", ".").split(".") if one)
    return ".".join(kept)[:_MOST]


def is_backward(path: str) -> bool:
    """Whether a location lies in the backward pass."""
    return "transpose(" in path


def role_of_name(name: str) -> str:
    """Return the role that an argument's name speaks for; empty where it says nothing."""
    if not name:
        return ""
    if _OPTIMIZER.search(name) or _STATISTICS.search(name) or (_BUFFER.search(name) and "param" not in name.lower()):
        return STORED
    if _GIVEN.match(name) and not re.search(r"param|kernel|weight", name, re.IGNORECASE):
        return "input"
    return "parameter" if _TRAINED.search(name) else ""


def _bare(part: str) -> str:
    name = part.strip()
    while found := _TRANSFORMS.fullmatch(name):
        name = found[1]
    return name
