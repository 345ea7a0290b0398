"""`./tandem capture`: traces a user's own model in the user's own environment, over shapes alone.

The function that is named makes the model and example inputs; it is the user's code, run by the user, outside of any sandbox.
What comes back is a graph: no weights, no values, no code.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from core.errors import BadInput
from core.graph import Graph
from core.graph_json import graph_from_json
from intake.readers.torch_fit import Point
from intake.readers.torch_follow import follow
from intake.readers.torch_functions import NAMES
from intake.readers.torch_record import Trace
from intake.readers.torch_recorder import Recorder, tensors_of
from intake.readers.torch_trace import shortened, trace
from intake.source import BytesSource

_WANTED = "a function that returns (module, inputs), with inputs a tensor, a tuple or a mapping"


def capture(path_and_name: str, training: bool) -> Graph:
    """Return the graph of a model that a function of a script makes.

    Args:
        path_and_name: `script.py:make_model`.
        training: whether the backward pass is traced too.

    Raises:
        BadInput: no such function, it fails, or what it returns is no model of torch or function of JAX with its inputs.
    """
    path, _, name = path_and_name.rpartition(":")
    if not path or not name.isidentifier():
        raise BadInput(f"{path_and_name[:80]!r}", "script.py:make_model", "name the script and the function that makes the model")
    made = _made(Path(path), name)
    if not isinstance(made, tuple | list) or not 2 <= len(cast("Sequence[Any]", made)) <= 3:
        raise BadInput(f"{type(made).__name__} from {name}", _WANTED, "return both from it")
    model, *given = cast("Sequence[Any]", made)
    args, kwargs = _arguments(given)
    if _is_torch(model):
        return _of_torch(model, args, kwargs, training)
    if callable(model):
        return _of_jax(model, args, kwargs, name)
    raise BadInput(f"{type(model).__name__} from {name}", _WANTED, "return a torch module, or a function of JAX")


def _made(path: Path, name: str) -> Any:
    """Run the script and the function: whatever they raise becomes one line."""
    if not path.is_file():
        raise BadInput(f"no script {str(path)[:120]!r}", "a Python file", "check the path")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{str(path)[:120]!r}", "a Python file", "give a script whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
        maker = getattr(module, name, None)
        return maker() if callable(maker) else _no_function(path, name)
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - somebody's own script may raise whatever it likes
        reason = " ".join(str(error).split())[:160]
        raise BadInput(
            f"{path.name[:60]}:{name}, which raises {type(error).__name__}: {reason}",
            "a script that runs",
            "run it by itself first",
        ) from None
    finally:
        sys.path.remove(folder)


def _no_function(path: Path, name: str) -> Any:
    raise BadInput(f"no function {name} in {path.name[:60]}", "a function that makes the model", "check its name")


def _arguments(given: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    for one in given:
        if isinstance(one, Mapping):
            kwargs |= {str(key): value for key, value in cast("Mapping[object, Any]", one).items()}
        else:
            args += tuple(cast("Sequence[Any]", one)) if isinstance(one, tuple | list) else (one,)
    return args, kwargs


def _is_torch(model: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _of_torch(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool) -> Graph:
    import torch

    model.train(training)
    known = _emptied(torch, model)
    tensors = list(tensors_of(torch, [args, kwargs]))
    asked, has_length = _asked(tensors)

    def run(point: Point) -> Trace:
        def inputs(recorder: Recorder) -> tuple[tuple[Any, ...], dict[str, Any]]:
            for empty, real in known:
                recorder.know(empty, real)
            sized = _sizer(torch, recorder, asked, point, has_length)
            return cast("tuple[Any, ...]", sized(args)), cast("dict[str, Any]", sized(kwargs))

        return trace(model, inputs, training)

    def short(point: Point) -> Trace:
        with shortened(model):
            return run(point)

    with shortened(model) as worth:
        pass
    far = (asked.length, 2 * asked.length + 8, asked.length + asked.length // 2 + 4) if has_length else ()
    graph = follow(
        type(model).__name__,
        asked,
        run,
        NAMES,
        lengths=far,
        batches=(11, 13, 7) if asked.batch else (),
        short=short if worth else None,
    )
    return Graph(
        "captured",
        graph.title,
        graph.tensors,
        graph.nodes,
        graph.outputs,
        graph.symbols,
        graph.has_backward,
        graph.notes,
        (("parameters", sum(one.numel() for one in model.parameters())), *graph.facts),
    )


def _emptied(torch: Any, model: Any) -> list[tuple[Any, Any]]:
    """Put every tensor of a module on the meta device, tied ones together; return small buffers with what they held."""
    known: list[tuple[Any, Any]] = []
    moved: dict[int, Any] = {}
    kept: list[Any] = []

    def empty(one: Any) -> Any:
        if id(one) not in moved:
            made = torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="meta")
            if isinstance(one, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=one.requires_grad)
            elif one.device.type != "meta" and one.numel() <= 65_536 and not one.is_sparse:
                known.append((made, one.detach().cpu()))
            moved[id(one)] = made
            kept.append(one)  # so that no other tensor takes its id
        return moved[id(one)]

    with torch.no_grad():
        for module in model.modules():
            held = {**vars(module), **module._buffers, **module._parameters}  # noqa: SLF001 - where modules keep them
            for name in [name for name, one in held.items() if isinstance(one, torch.Tensor)]:
                setattr(module, name, empty(held[name]))
    return known


def _asked(tensors: Sequence[Any]) -> tuple[Point, bool]:
    """The batch is the first axis that all inputs share, the length the second one of tokens or of sequences."""
    firsts = {one.shape[0] for one in tensors if one.dim()}
    seconds = {one.shape[1] for one in tensors if (one.dim() == 2 and not one.is_floating_point()) or one.dim() == 3}
    batch = int(min(firsts)) if len(firsts) == 1 else 0
    has_length = batch > 0 and len(seconds) == 1
    return Point(batch, int(min(seconds)) if has_length else 1), has_length


def _sizer(torch: Any, recorder: Recorder, asked: Point, point: Point, has_length: bool) -> Callable[[Any], Any]:
    """Return what turns example inputs into ones of a batch and a length, on the meta device."""

    def sized(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return one(value)
        if isinstance(value, Mapping):
            return {key: sized(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
        if isinstance(value, tuple | list):
            return (
                type(value)(map(sized, cast("Sequence[Any]", value))) if type(cast("object", value)) in (tuple, list) else value
            )
        return value

    def one(tensor: Any) -> Any:
        shape = list(tensor.shape)
        if asked.batch and shape:
            shape[0] = point.batch
        if (
            has_length
            and len(shape) > 1
            and tensor.shape[1] == asked.length
            and (len(shape) == 3 or not tensor.is_floating_point())
        ):
            shape[1] = point.length
        made = torch.empty(shape, dtype=tensor.dtype, device="meta", requires_grad=tensor.requires_grad)
        if not tensor.is_floating_point() and made.numel() <= 2**18 and tensor.device.type != "meta" and tensor.numel():
            real = tensor.detach().cpu()
            for axis, extent in enumerate(shape):
                real = real.index_select(axis, torch.arange(extent, device="cpu") % real.shape[axis])
            recorder.know(made, real, given=True)
        return made

    return sized


def _of_jax(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Graph:
    """Lower a function of JAX over shapes, and read what it became."""
    if "jax" not in sys.modules:
        raise BadInput(f"a {type(function).__name__} from {name}", _WANTED, "return a torch module, or a function of JAX")
    import jax

    from intake.readers import stablehlo

    shapes = jax.tree_util.tree_map(
        lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype) if hasattr(one, "shape") else one, (args, kwargs)
    )
    try:
        text = jax.jit(function).lower(*shapes[0], **shapes[1]).as_text(debug_info=True)
    except Exception as error:  # noqa: BLE001 - somebody's own function may raise whatever it likes
        reason = " ".join(str(error).split())[:160]
        raise BadInput(
            f"a function that JAX cannot lower ({type(error).__name__}: {reason})",
            "one that jax.jit takes",
            "call it under jax.jit first",
        ) from None
    graph = graph_from_json(stablehlo.read(BytesSource(f"{name}.mlir", text.encode()), {}))
    assert isinstance(graph, Graph)
    return graph
