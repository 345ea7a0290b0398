"""Python functions of torch that a trace over shapes answers itself.

Fused operations (attention, grouped products, recurrent layers) stay one operation, as they are on an accelerator, instead of
falling apart into what the meta device would do. Values that a model reads (`item`, `tolist`, `if tensor:`) come from the small
tensors that the recorder computes.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from intake.readers.torch_recorder import Recorder

NAMES = {
    "tandem.attention": "aten.scaled_dot_product_attention",
    "tandem.attention_backward": "aten.scaled_dot_product_attention_backward",
    "tandem.grouped_matmul": "aten._grouped_mm", "tandem.grouped_matmul_backward": "aten._grouped_mm_backward",
    "tandem.recurrent": "aten.lstm", "tandem.recurrent_backward": "aten.lstm_backward",
    "tandem.selective_scan": "selective_scan", "tandem.selective_scan_backward": "selective_scan_backward",
}  # fmt: skip
"""What fused operations are called in a graph."""
_SCHEMAS = """
attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask) -> (Tensor, Tensor)
attention_backward(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor result, Tensor sums, Tensor gradient,
    bool bias) -> Tensor[]
grouped_matmul(Tensor input, Tensor weight, Tensor offsets) -> Tensor
grouped_matmul_backward(Tensor input, Tensor weight, Tensor offsets, Tensor gradient) -> (Tensor, Tensor)
recurrent(Tensor input, Tensor[] states, Tensor[] params, str mode, bool bidirectional, bool batch_first) -> Tensor[]
recurrent_backward(Tensor input, Tensor[] states, Tensor[] params, str mode, bool bidirectional, bool batch_first,
    Tensor[] gradients) -> Tensor[]
selective_scan(Tensor input, Tensor delta, Tensor a, Tensor b, Tensor c, Tensor[] extra) -> (Tensor, Tensor)
selective_scan_backward(Tensor input, Tensor delta, Tensor a, Tensor b, Tensor c, Tensor[] extra, Tensor gradient) -> Tensor[]
"""
"""Of the fused operations, one a line; a line that begins with a space goes on with the one before."""


def _attention(recorder: Recorder, query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any]:
    del key, mask
    # kernels lay their result as the queries lie: joining the heads copies nothing where those were only seen as heads
    like = query if value.shape[-1] == query.shape[-1] else query[..., :1].expand(*query.shape[:-1], value.shape[-1])
    made = recorder.torch.empty_like(like)
    return made, query.new_empty(query.shape[:-1], dtype=recorder.torch.float32)


def _attention_backward(recorder: Recorder, query: Any, key: Any, value: Any, mask: Any, *rest: Any) -> list[Any]:
    like = recorder.torch.empty_like
    return [like(query), like(key), like(value), *([like(mask)] if rest[-1] else [])]


def _grouped(recorder: Recorder, given: Any, weight: Any, offsets: Any) -> Any:
    del recorder, offsets
    return given.new_empty((given.shape[0], weight.shape[-1]))


def _grouped_backward(recorder: Recorder, given: Any, weight: Any, *_: Any) -> tuple[Any, Any]:
    return recorder.torch.empty_like(given), recorder.torch.empty_like(weight)


def _recurrent(
    recorder: Recorder, given: Any, states: list[Any], params: list[Any], mode: str, bidirectional: bool, batch_first: bool
) -> list[Any]:
    del recorder, params, mode, batch_first
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return [given.new_empty((*given.shape[:-1], width)), *(state.new_empty(state.shape) for state in states)]


def _recurrent_backward(recorder: Recorder, given: Any, states: list[Any], params: list[Any], *_: Any) -> list[Any]:
    return [recorder.torch.empty_like(one) for one in (given, *states, *params)]


def _scan(recorder: Recorder, given: Any, delta: Any, a: Any, *_: Any) -> tuple[Any, Any]:
    del recorder, delta
    return given.new_empty(given.shape), given.new_empty((*given.shape[:2], a.shape[-1]))


def _scan_backward(
    recorder: Recorder, given: Any, delta: Any, a: Any, b: Any, c: Any, extra: list[Any], gradient: Any
) -> list[Any]:
    del gradient
    return [recorder.torch.empty_like(one) for one in (given, delta, a, b, c, *extra)]


OWN: dict[str, Callable[..., Any]] = {
    "tandem.attention": _attention, "tandem.attention_backward": _attention_backward, "tandem.grouped_matmul": _grouped,
    "tandem.grouped_matmul_backward": _grouped_backward, "tandem.recurrent": _recurrent,
    "tandem.recurrent_backward": _recurrent_backward, "tandem.selective_scan": _scan,
    "tandem.selective_scan_backward": _scan_backward,
}  # fmt: skip
"""The shapes of fused operations, by their names."""


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    """Declare the fused operations to torch, once a process, and give them their gradients."""
    import torch

    library = torch.library.Library("tandem", "DEF")
    for schema in _SCHEMAS.replace("\n    ", " ").strip().split("\n"):
        library.define(schema)
    return library, torch.ops.tandem


@lru_cache(maxsize=1)
def _attention_function() -> Any:
    import torch

    ours = _library()[1]

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
            made, sums = ours.attention(query, key, value, mask)
            ctx.save_for_backward(query, key, value, mask, made, sums)
            return made

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            query, key, value, mask, made, sums = ctx.saved_tensors
            found = ours.attention_backward(query, key, value, mask, made, sums, gradients[0], bool(ctx.needs_input_grad[3]))
            return (*found, None)[:4]

    return Attention


@lru_cache(maxsize=1)
def _grouped_function() -> Any:
    import torch

    ours = _library()[1]

    class Grouped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, given: Any, weight: Any, offsets: Any) -> Any:
            ctx.save_for_backward(given, weight, offsets)
            return ours.grouped_matmul(given, weight, offsets)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return (*ours.grouped_matmul_backward(*ctx.saved_tensors, gradients[0]), None)

    return Grouped


@lru_cache(maxsize=1)
def _recurrent_function() -> Any:
    import torch

    ours = _library()[1]

    class Recurrent(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, mode: str, bidirectional: bool, batch_first: bool, count: int, given: Any, *rest: Any) -> Any:
            made = ours.recurrent(given, list(rest[:count]), list(rest[count:]), mode, bidirectional, batch_first)
            ctx.save_for_backward(given, *rest, *made)
            ctx.said = (mode, bidirectional, batch_first, count)
            return tuple(made)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            mode, bidirectional, batch_first, count = ctx.said
            saved = ctx.saved_tensors[: len(ctx.saved_tensors) - len(gradients)]
            states, params = list(saved[1 : 1 + count]), list(saved[1 + count :])
            found = ours.recurrent_backward(
                saved[0], states, params, mode, bidirectional, batch_first, [one for one in gradients if one is not None]
            )
            return (None, None, None, None, *found)

    return Recurrent


def _fused_on_processor(query: Any, key: Any, value: Any, mask: Any, dropout: float, grouped: bool) -> bool:
    """Whether torch has one kernel for an attention on the processor.

    Source: use_flash_attention_cpp in aten/src/ATen/native/transformers/sdp_utils_cpp.cpp of PyTorch.
    """
    heads = query.dim() == 4 and (grouped or query.shape[:2] == key.shape[:2] == value.shape[:2])
    return heads and query.shape[-1] == value.shape[-1] and dropout == 0 and not (mask is not None and mask.requires_grad)


@lru_cache(maxsize=1)
def scan_function() -> Any:
    """Return the fused selective scan, with its gradient: of (input, delta, a, b, c, and whatever else is trained)."""
    import torch

    ours = _library()[1]

    class Scan(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *given: Any) -> Any:
            ctx.save_for_backward(*given)
            return ours.selective_scan(*given[:5], list(given[5:]))

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            given = ctx.saved_tensors
            return tuple(ours.selective_scan_backward(*given[:5], list(given[5:]), gradients[0]))

    return Scan


class Functions:
    """Answers what torch's Python functions are asked during a trace.

    Args:
        recorder: of the trace.
        fused: whether attention and its like stay one operation; FlopCounterMode wants them apart.
        processor: whether torch's kernels for the processor are meant: none for attention with dropout or with a mask that is
            trained, which accelerators have.
    """

    def __init__(self, recorder: Recorder, fused: bool = True, processor: bool = False) -> None:
        self.recorder, self.torch, self.processor = recorder, recorder.torch, processor
        torch = self.torch
        self.reads = {torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__bool__, torch.Tensor.__int__, torch.Tensor.__float__,
                      torch.Tensor.__index__, torch.Tensor.numpy}  # fmt: skip
        self.makes = {torch.tensor, torch.as_tensor, torch.from_numpy}
        self.plain_attention = torch.nn.functional.scaled_dot_product_attention
        self.fused: dict[Any, Callable[..., Any]] = {}
        if fused:
            self.fused[torch.nn.functional.scaled_dot_product_attention] = self._attention
            grouped = (getattr(torch.nn.functional, "grouped_mm", None), getattr(torch, "_grouped_mm", None))
            self.fused |= {one: self._grouped for one in grouped if one is not None}
            self.fused |= {torch.lstm: self._lstm, torch.gru: self._gru,
                           torch.rnn_tanh: self._rnn, torch.rnn_relu: self._rnn}  # fmt: skip

    def handle(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer one call of a torch function."""
        own = self.fused.get(func)
        if own is not None:
            made = own(*args, **kwargs)
            if made is not NotImplemented:
                return made
        if func in self.makes:
            return self._make(func, args, kwargs)
        if func in self.reads and args[0].device.type == "meta":
            return self._read(func, args[0], args[1:], kwargs)
        return func(*args, **kwargs)

    def attention(self, *args: Any, **kwargs: Any) -> Any:
        """Attention as one operation on the meta device, and as torch has it elsewhere."""
        made = self._attention(*args, **kwargs)
        return self.plain_attention(*args, **kwargs) if made is NotImplemented else made

    def _make(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if args and isinstance(args[0], self.torch.Tensor):
            return func(*args, **kwargs)
        wanted = kwargs.pop("device", None) if func is not self.torch.from_numpy else None
        if func is not self.torch.from_numpy:
            kwargs["device"] = "cpu"
        args = tuple(map(self._plain, args))
        with self.torch._C._DisableTorchDispatch():  # noqa: SLF001 - the value itself, beside the trace
            real = func(*args, **kwargs)
        if (wanted is not None and self.torch.device(wanted).type == "cpu") or real.numel() > 65_536:
            return real
        made = self.torch.empty(real.shape, dtype=real.dtype, device="meta", requires_grad=real.requires_grad)
        self.recorder.know(made, real.detach())
        return made

    def _plain(self, value: Any) -> Any:
        """Replace tensors in nested lists by the values that are known of them."""
        if isinstance(value, self.torch.Tensor) and value.device.type == "meta":
            return self._read(self.torch.Tensor.tolist, value, (), {})
        return type(value)(map(self._plain, value)) if type(value) in (list, tuple) else value

    def _read(self, func: Any, tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.recorder.host_read(tensor)
        with self.torch._C._DisableTorchDispatch():  # noqa: SLF001 - the value itself, beside the trace
            real = self.recorder.value(tensor)
            if real is not None:
                return func(real, *args, **kwargs)
        return self.recorder.guessed(tensor if func is not self.torch.Tensor.__bool__ else tensor.bool())

    def _attention(
        self, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
        enable_gqa: bool = False, **_: Any,
    ) -> Any:
        del is_causal
        if query.device.type != "meta":
            return NotImplemented
        if self.processor and not _fused_on_processor(query, key, value, attn_mask, dropout_p, enable_gqa):
            return NotImplemented
        return _attention_function().apply(query, key, value, attn_mask)

    def _grouped(self, given: Any, weight: Any, *args: Any, offs: Any = None, **_: Any) -> Any:
        offs = args[0] if args else offs
        if given.device.type != "meta" or given.dim() != 2 or weight.dim() != 3 or offs is None:
            return NotImplemented
        return _grouped_function().apply(given, weight, offs)

    def _lstm(self, given: Any, states: Any, params: Any, *rest: Any) -> Any:
        if not isinstance(rest[0], bool):  # packed sequences: (data, batch_sizes, states, params, ...)
            return NotImplemented
        return self._layers("lstm", given, list(states), params, rest)

    def _gru(self, given: Any, state: Any, params: Any, *rest: Any) -> Any:
        return self._layers("gru", given, [state], params, rest) if isinstance(rest[0], bool) else NotImplemented

    def _rnn(self, given: Any, state: Any, params: Any, *rest: Any) -> Any:
        return self._layers("rnn", given, [state], params, rest) if isinstance(rest[0], bool) else NotImplemented

    def _layers(self, mode: str, given: Any, states: list[Any], params: Any, rest: tuple[Any, ...]) -> Any:
        """Run recurrent layers; `rest` is (has_biases, num_layers, dropout, train, bidirectional, batch_first)."""
        if given.device.type != "meta":
            return NotImplemented
        run = _recurrent_function().apply
        return run(mode, bool(rest[4]), bool(rest[5]), len(states), given, *states, *params)
