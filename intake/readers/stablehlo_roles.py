"""Which arguments of a program are trained, and which of its operations belong to the backward pass or the update.

XLA's programs do not say: an argument is an argument. Names tell where the file kept them; otherwise how arguments are used
does, and it is said that it was guessed.
"""

from collections.abc import Sequence
from dataclasses import replace

from core.graph import Node
from intake.readers.buffer_names import is_counter
from intake.readers.stablehlo_build import Builder
from intake.readers.stablehlo_names import role_of_name
from intake.readers.stablehlo_program import Function

_FRACTIONS = ("fp", "bf", "complex")
GUESS = "which arguments are trained is guessed from how they are used: the file does not name them"


def assign_roles(main: Function, arguments: Sequence[int], build: Builder) -> None:
    """Give each argument's tensor its role.

    Args:
        main: the function that is run.
        arguments: its tensors.
        build: what was walked; its tensors are changed.
    """
    names = main.names or ("",) * len(arguments)
    told = [given or role_of_name(name) for given, name in zip(main.roles or ("",) * len(arguments), names, strict=True)]
    roles = [one or "input" for one in told] if "parameter" in told else _guessed(arguments, told, build)
    for at, role in zip(arguments, roles, strict=True):
        tensor = build.tensors[at]
        if role == "parameter" and not tensor.shape and not tensor.dtype.startswith(_FRACTIONS):
            role = "input"  # noqa: PLW2901 - a counter that goes along with the parameters
        elif role == "parameter" and is_counter(tensor.dtype):
            role = "constant"  # noqa: PLW2901 - a table
        build.tensors[at] = replace(tensor, role=role)


def _guessed(arguments: Sequence[int], told: Sequence[str], build: Builder) -> list[str]:
    tensors = [build.tensors[at] for at in arguments]
    floats = [at for at, one in zip(arguments, tensors, strict=True) if one.dtype.startswith(_FRACTIONS) and one.shape]
    given = _given(arguments, told, build)
    batch = build.tensors[given].shape[0] if given is not None and build.tensors[given].shape else None
    kernels = {build.source(node.inputs[1]) for node in build.nodes if node.kind in {"matmul", "conv"} and len(node.inputs) > 1}
    roles: list[str] = []
    for at, said, one in zip(arguments, told, tensors, strict=True):
        follows = bool(one.shape) and one.shape[0] == batch
        late = given is not None and at > given
        if said:
            roles.append(said)
        elif at not in floats or at == given or (follows and (late or (len(one.shape) > 1 and at not in kernels))):
            roles.append("input")
        else:
            roles.append("parameter")
    if "parameter" in roles:
        build.note(GUESS)
    return roles


def _given(arguments: Sequence[int], told: Sequence[str], build: Builder) -> int | None:
    """The argument that shows the batch: one of whole numbers, else the left one of the first product of two, else the last."""
    own = set(arguments)
    for at, said in zip(arguments, told, strict=True):
        tensor = build.tensors[at]
        if said == "input" and tensor.shape:
            return at
        if not tensor.dtype.startswith((*_FRACTIONS, "bool", "uint32")) and tensor.shape and said != "constant":
            return at
    for node in build.nodes:
        if node.kind in {"matmul", "conv"} and len(node.inputs) > 1:
            left, right = (build.source(one) for one in node.inputs[:2])
            if left in own and right in own and left != right:
                return left
    return next((at for at in reversed(arguments) if build.tensors[at].shape), None)


def name_lookups(build: Builder) -> None:
    """Make embeddings of the gathers that read whole rows of a trained table."""
    for at, node in enumerate(build.nodes):
        if node.kind != "gather" or not node.inputs:
            continue
        table = build.tensors[node.inputs[0]]
        trained = build.tensors[build.source(node.inputs[0])].role == "parameter"
        if trained and len(table.shape) == 2 and node.dims[1] == table.shape[1]:
            build.nodes[at] = replace(node, kind="embedding", dims=(*node.dims, table.shape[0]))


def mark_scans(build: Builder) -> None:
    """Mark loops that run step after step; one that takes its weights pass by pass is a stack of layers instead."""
    for loop in build.loops:
        nodes = build.nodes[loop.first : loop.last]
        slices = [node for node in nodes if node.op.endswith("dynamic_slice") and node.inputs]
        layers = any(build.tensors[build.source(node.inputs[0])].role == "parameter" for node in slices)
        if loop.serial and not layers:
            build.flag(loop.first, loop.last, "serial_scan")


def assign_phases(build: Builder, outputs: Sequence[int]) -> bool:
    """Tell forward, backward and update apart.

    Args:
        build: what was walked; its nodes are changed.
        outputs: tensors of the answer.

    Returns:
        Whether there is a backward pass.
    """
    if any(node.phase == "backward" for node in build.nodes):  # its location says so
        _mark_update(build)
        return True
    if not _gives_gradients(build, outputs):
        return False
    loss = next((at for at in outputs if not build.tensors[at].shape and build.tensors[at].dtype.startswith(_FRACTIONS)), None)
    if loss is None:
        build.note("gradients are computed, but without a loss among the results the forward pass cannot be told apart")
        return True
    needed = _before(build.nodes, loss)
    build.nodes[:] = [node if at in needed else replace(node, phase="backward") for at, node in enumerate(build.nodes)]
    build.note("what the loss does not need is taken for the backward pass: the file has no locations")
    return True


def _gives_gradients(build: Builder, outputs: Sequence[int]) -> bool:
    """Whether there is a result of each weight's shape, and two products for each one that takes a weight."""
    wanted = [one.shape for one in build.tensors if one.role == "parameter"]
    given = [build.tensors[at].shape for at in outputs]
    products = [node for node in build.nodes if node.kind in {"matmul", "conv"}]
    taking = {build.source(one) for node in products for one in node.inputs}
    weights = sum(build.tensors[at].role == "parameter" for at in taking)
    return len(products) >= 2 * weights > 0 and all(given.count(shape) >= wanted.count(shape) for shape in wanted)


def _before(nodes: Sequence[Node], wanted: int) -> set[int]:
    """Nodes that a tensor depends on."""
    made = {out: at for at, node in enumerate(nodes) for out in node.outputs}
    found: set[int] = set()
    open_ = [wanted]
    while open_:
        at = made.get(open_.pop())
        if at is not None and at not in found:
            found.add(at)
            open_.extend(nodes[at].inputs)
    return found


def _mark_update(build: Builder) -> None:
    """What follows from gradients, and lies neither in the backward nor in the differentiated forward pass, is the update."""
    tainted: set[int] = set()
    for at, node in enumerate(build.nodes):
        follows = node.phase == "backward" or any(one in tainted for one in node.inputs)
        if follows:
            tainted.update(node.outputs)
        if follows and node.phase == "forward":
            build.nodes[at] = replace(node, phase="update")
