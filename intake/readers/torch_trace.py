"""Traces a torch module over shapes: forward, and backward when it is trained.

Runs in a worker, or in the user's own environment for `./tandem capture`. Parameters and inputs lie on torch's meta device; no
weight is read and no arithmetic is done.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import gc
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from core.errors import BadInput
from intake.readers.torch_functions import OWN, Functions
from intake.readers.torch_record import Trace, in_place
from intake.readers.torch_recorder import Recorder, Unread, tensors_of


def trace(
    module: Any,
    inputs: Callable[[Recorder], tuple[tuple[Any, ...], Mapping[str, Any]]],
    training: bool,
    loss: Callable[[Any], Any] | None = None,
    processor: bool = False,
) -> Trace:
    """Run a module once and return what it did.

    Args:
        module: with its parameters on the meta device.
        inputs: makes positional and named arguments on the meta device; may tell the recorder what small ones hold.
        training: whether the backward pass is run too.
        loss: of what the module gave; its own `loss`, or the sum of all that it gave, where there is none.
        processor: whether it runs as with torch's kernels for the processor.

    Raises:
        BadInput: the model reads values that shapes do not tell.
    """
    import torch

    recorder = Recorder(OWN)
    module.train(training)
    names = {id(one): name for name, one in module.named_modules()}
    _named(recorder, module)
    args, kwargs = inputs(recorder)
    for at, one in enumerate(tensors_of(torch, [*args, *kwargs.values()])):
        recorder.name(one, f"input {at}", "input")
    try:
        with traced(recorder, names, True, processor), torch.set_grad_enabled(training):
            made = module(*args, **kwargs)
            answers = list(tensors_of(torch, made))
            recorder.trace.outputs += [recorder.name(one, "", "value") for one in answers]
            if training:
                (loss or loss_of)(made).backward()
            recorder.recording = False
    except Unread as error:
        raise BadInput(
            f"a model that reads {error}",
            "one whose steps follow from shapes",
            "export it with torch.export, or capture it with example inputs",
        ) from None
    finally:
        module.zero_grad(set_to_none=True)
    del made, answers, args, kwargs
    return in_place(recorder.trace)


def loss_of(made: Any) -> Any:
    """Return what a model is trained on: the loss that it computes, or the sum of all fractions that it gives."""
    import torch

    own: Any = getattr(made, "loss", None)
    if own is not None and isinstance(own, torch.Tensor):
        return own.sum()
    found = [one for one in tensors_of(torch, made) if one.is_floating_point() and one.requires_grad]
    if not found:
        raise BadInput(
            "a model that gives nothing to train on",
            "a result that follows from parameters",
            "ask for inference, or give a module that returns its loss",
        )
    total: Any = found[0].sum()
    for one in found[1:]:
        total = total + one.sum()
    return total


@contextmanager
def traced(recorder: Recorder, names: Mapping[int, str], fused: bool, processor: bool = False) -> Generator[None]:
    """Let a recorder see every operation, and every module as it is entered, while the block runs.

    Args:
        recorder: that sees them.
        names: of modules, by their identity.
        fused, processor: as in `Functions`.
    """
    import torch

    fast = torch.backends.mha.get_fastpath_enabled()
    collected = gc.isenabled()
    with ExitStack() as stack:
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)  # one fused call for a layer, for which there is no shape function
        if collected:
            stack.callback(gc.enable)
            gc.disable()  # when memory dies would hang on when cycles are found
        modules = torch.nn.modules.module
        before = modules.register_module_forward_pre_hook(
            lambda module, _: recorder.stack.append(names.get(id(module), recorder.stack[-1]))
        )
        after = modules.register_module_forward_hook(lambda module, given, made: _left(recorder), always_call=True)  # noqa: ARG005 - torch's signature
        stack.callback(before.remove)
        stack.callback(after.remove)
        functions = Functions(recorder, fused, processor)
        stack.callback(
            setattr, torch.nn.functional, "scaled_dot_product_attention", torch.nn.functional.scaled_dot_product_attention
        )
        if fused:  # by name too: a mode does not see what other functions of torch call
            torch.nn.functional.scaled_dot_product_attention = functions.attention
        stack.enter_context(torch.device("meta"))
        stack.enter_context(_function_mode(functions))
        stack.enter_context(_dispatch_mode(recorder))
        yield


@contextmanager
def shortened(module: Any) -> Generator[bool]:
    """Leave out repeats of layers while the block runs: the first of each kind and one more stay.

    Yields:
        Whether that makes the model worth tracing apart: at most half of its layers stay.
    """
    import torch

    kept: list[tuple[Any, dict[str, Any]]] = []
    before = after = 0
    for one in module.modules():
        if isinstance(one, torch.nn.ModuleList | torch.nn.Sequential) and len(one) > 3:
            layers = list(one._modules.items())  # noqa: SLF001 - the only way to leave layers out and put them back
            firsts: dict[object, int] = {}
            for at, (_, layer) in enumerate(layers):
                firsts.setdefault(_signature(layer), at)
            stay = min(len(layers), max(firsts.values()) + 2)
            before, after = before + len(layers), after + stay
            if stay < len(layers):
                kept.append((one, one._modules))  # noqa: SLF001
    try:
        for one, modules in kept:
            stay = max({_signature(layer): at for at, layer in reversed(list(enumerate(modules.values())))}.values()) + 2
            one._modules = dict(list(modules.items())[:stay])  # noqa: SLF001
        yield bool(kept) and 2 * after <= before
    finally:
        for one, modules in kept:
            one._modules = modules  # noqa: SLF001


def _signature(layer: Any) -> object:
    """What makes layers alike: classes, shapes of weights, and settings other than the layer's own number."""
    weights = tuple((name, tuple(one.shape), one.dtype) for name, one in layer.named_parameters())
    settings = tuple(
        (
            type(one),
            tuple(
                (key, value)
                for key, value in vars(one).items()
                if isinstance(value, int | float | str)
                and "idx" not in key
                and "index" not in key
                and "layer_id" not in key
                and not key.startswith("_")
            ),
        )
        for one in layer.modules()
    )
    return (weights, settings)


def _left(recorder: Recorder) -> None:
    if len(recorder.stack) > 1:
        recorder.stack.pop()


def _named(recorder: Recorder, module: Any) -> None:
    """Write down parameters and buffers before anything runs; what is tied is one tensor under its first name."""
    for name, one in module.named_parameters(remove_duplicate=True):
        recorder.name(one, name, "parameter")
    for name, one in module.named_buffers(remove_duplicate=True):
        if one is not None:
            recorder.name(one, name, "constant")


def _dispatch_mode(recorder: Recorder) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return recorder.handle(func, args, kwargs or {})

    return Dispatch()


def _function_mode(functions: Functions) -> Any:
    from torch.overrides import TorchFunctionMode

    class Answers(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return functions.handle(func, args, kwargs or {})

    return Answers()
