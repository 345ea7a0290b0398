"""Runs torch operations over shapes alone and writes down each of them.

Tensors lie on torch's meta device: they have no data, so a model of any size costs nothing but Python's time. Small tensors of
whole numbers (positions, masks, counts) are computed beside it on real memory, since models read them to decide what to do. An
operation that was seen with the same shapes before is not asked again: torch's own shape functions take most of the time.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from core.errors import BadInput
from intake.readers.torch_record import At, Made, Seen, Trace

MOST_CALLS = 200_000
MOST_KNOWN = 2**18
"""Elements of a tensor that is computed for real."""
_RESHAPING = ("resize_", "set_", "squeeze_", "unsqueeze_", "transpose_", "t_", "as_strided_", "swapaxes_", "resize_as_", "data_")
_BOUNDED = {"aten.nonzero": True, "aten.masked_select": False, "aten._unique2": False, "aten.unique_consecutive": False,
            "aten.unique_dim": False, "aten.repeat_interleave": False, "aten.bincount": False}  # fmt: skip
_DRAWN = ("rand", "normal", "uniform", "bernoulli", "dropout", "multinomial", "empty", "exponential")


class Unread(Exception):
    """The model reads a value that a trace over shapes does not have."""


class Recorder:
    """One trace; `handle` is what torch's dispatcher calls for each operation."""

    def __init__(self, own: Mapping[str, Callable[..., Any]]) -> None:
        import torch

        self.torch = torch
        self.trace = Trace()
        self.dtypes = dtypes_of(torch)
        self.own = own
        self.stack: list[str] = [""]
        self.recording = True
        self._storages: dict[int, tuple[int, dict[tuple[object, ...], int], object]] = {}
        self._values: dict[int, Any] = {}
        self._given: set[int] = set()
        self._shapes: dict[tuple[object, ...], tuple[tuple[Any, ...], ...] | None] = {}
        self._scopes: dict[int, str] = {}
        self._sequence: int = torch._C._autograd._get_sequence_nr()  # noqa: SLF001 - no public way to number backward nodes

    def name(self, tensor: Any, name: str, role: str) -> int:
        """Write a tensor down before it is used, with its name and role."""
        return self._index(tensor, name, role)

    def handle(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one operation over shapes and write it down."""
        made = self._run(func, args, kwargs)
        if self.recording:
            self._write(func, args, kwargs, made)
        return made

    def value(self, tensor: Any) -> Any:
        """Return what a small tensor holds, on the CPU; None where it is not known."""
        if tensor.device.type != "meta":
            return tensor.detach()
        flat = self._values.get(tensor.untyped_storage()._cdata)  # noqa: SLF001 - identity of memory
        if flat is None or flat.dtype != tensor.dtype:
            return None
        return flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())

    def know(self, tensor: Any, real: Any, given: bool = False) -> None:
        """Keep what a tensor on the meta device would hold.

        Args:
            tensor: on the meta device.
            real: its values, on the CPU.
            given: whether they come with each call, so that whoever reads them waits for the device.
        """
        storage = tensor.untyped_storage()
        flat = self.torch.empty(storage.nbytes() // tensor.element_size(), dtype=tensor.dtype, device="cpu")
        flat.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()).copy_(real)
        if storage._cdata not in self._storages:  # noqa: SLF001
            self._index(tensor, "", "input" if given else "constant")
        self._values[storage._cdata] = flat  # noqa: SLF001
        if given:
            self._given.add(storage._cdata)  # noqa: SLF001

    def host_read(self, tensor: Any) -> None:
        """Write down that a value goes to the host; not one that follows from shapes alone."""
        place = tensor.untyped_storage()._cdata  # noqa: SLF001
        if self.recording and (place in self._given or place not in self._values):
            at = self._index(tensor)
            self.trace.calls.append(Made("aten.item", "default", {"self": At(at)}, (at,), (), self.stack[-1], False))

    def _run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        schema = func._schema  # noqa: SLF001 - the operation's declaration
        name = schema.name.replace("::", ".")
        if func.namespace == "tandem":
            return self.own[name](self, *args, **kwargs)
        if name in ("aten._ctc_loss", "aten._ctc_loss_backward"):
            return self._ctc(name, args)
        if name == "aten._local_scalar_dense" and args[0].device.type == "meta":
            return self._scalar(args[0])
        if name in _BOUNDED or name == "aten.index":
            return self._sized_by_values(func, name, args, kwargs)
        bare = name.partition(".")[2]
        target = args[0] if args and isinstance(args[0], self.torch.Tensor) else None
        if bare.endswith("_") and not bare.endswith("__") and bare not in _RESHAPING and target is not None \
                and target.device.type == "meta":
            self._write_values(func, args, kwargs)
            return target
        if name == "aten._unsafe_view" or any(one.alias_info is not None for one in (*schema.arguments, *schema.returns)):
            return func(*args, **kwargs)
        made = self._fresh(func, args, kwargs)
        if isinstance(made, self.torch.Tensor) and made.device.type == "meta" and made.numel() <= MOST_KNOWN:
            self._compute(func, bare, args, kwargs, made)
        return made

    def _fresh(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation that makes new tensors; those of the same shapes as before are made without asking."""
        try:
            key = (func, *map(self._key, args), *((name, self._key(value)) for name, value in kwargs.items()))
            known = self._shapes.get(key)
        except TypeError:
            return func(*args, **kwargs)
        if known is not None:
            made = [self.torch.empty_strided(size, stride, dtype=dtype, device="meta") for size, stride, dtype in known[1:]]
            return made[0] if known[0] == ("one",) else tuple(made)
        found = func(*args, **kwargs)
        several = found if isinstance(found, tuple) else (found,)
        if all(isinstance(one, self.torch.Tensor) and one.device.type == "meta" for one in several):
            whole = ("one",) if several is not found else ("several",)
            self._shapes[key] = (whole, *((tuple(one.shape), one.stride(), one.dtype) for one in several))
        return found

    def _key(self, value: Any) -> object:
        if isinstance(value, self.torch.Tensor):
            return (tuple(value.shape), value.stride(), value.dtype, value.device.type)
        if isinstance(value, list | tuple):
            return tuple(map(self._key, value))
        return (type(value), value)

    def _compute(self, func: Any, bare: str, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> None:
        """Compute a small result for real where all that it needs is known."""
        small = made.numel() <= 4096
        if (made.dtype.is_floating_point and not small) or made.dtype.is_complex or any(part in bare for part in _DRAWN):
            return
        known = self._known(args, kwargs)
        if known is None:
            return
        real_args, real_kwargs = known
        if "device" in real_kwargs:
            real_kwargs["device"] = self.torch.device("cpu")
        try:
            self.know(made, func(*real_args, **real_kwargs), self._from_given(args, kwargs))
        except (RuntimeError, NotImplementedError, IndexError, ValueError):
            return

    def _from_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        found = tensors_of(self.torch, [*args, *kwargs.values()])
        return any(one.untyped_storage()._cdata in self._given for one in found)  # noqa: SLF001

    def _known(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        missing = False

        def real(value: Any) -> Any:
            nonlocal missing
            if isinstance(value, self.torch.Tensor):
                found = None if missing else self.value(value)
                missing = missing or found is None
                return found
            if isinstance(value, list | tuple):
                return type(value)(map(real, value)) if type(value) in (list, tuple) else value
            return value

        for value in (*args, *kwargs.values()):
            real(value)
            if missing:
                return None
        return tuple(map(real, args)), {name: real(value) for name, value in kwargs.items()}

    def _write_values(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Follow an operation in place on what is known; what is written with unknown values is unknown from then on."""
        storage = args[0].untyped_storage()._cdata  # noqa: SLF001
        if storage not in self._values:
            return
        known = self._known(args, kwargs)
        if known is None:
            del self._values[storage]
            return
        try:
            func(*known[0], **known[1])
        except (RuntimeError, NotImplementedError, IndexError, ValueError):
            del self._values[storage]

    def _sized_by_values(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run what has a result as long as values say: exactly where they are known, else as long as it can be."""
        if name == "aten.index":
            masks = [one for one in args[1] if one is not None and one.dtype in (self.torch.bool, self.torch.uint8)]
            if not masks:
                made = self._fresh(func, args, kwargs)
                if made.device.type == "meta" and made.numel() <= MOST_KNOWN:
                    self._compute(func, "index", args, kwargs, made)
                return made
            places: list[Any] = []
            for one in args[1]:
                if one is None or one.dtype not in (self.torch.bool, self.torch.uint8):
                    places.append(one)
                else:
                    places += [self._meta((self._count(one),), self.torch.int64)] * one.dim()
            return func(args[0], places)
        known = self._known(args, kwargs)
        if known is not None and all(one.numel() <= MOST_KNOWN for one in known[0] if isinstance(one, self.torch.Tensor)):
            found = func(*known[0], **known[1])
            several = found if isinstance(found, tuple) else (found,)
            made = tuple(self._meta(one.shape, one.dtype) for one in several)
            for one, real in zip(made, several, strict=True):
                self.know(one, real, self._from_given(args, kwargs))
            return made if isinstance(found, tuple) else made[0]
        return self._bounded(name, args, kwargs)

    def _bounded(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        first = args[0]
        if name == "aten.masked_select":
            return self._meta((self._count(args[1]),), first.dtype)
        if name == "aten.repeat_interleave":
            size = kwargs.get("output_size")
            if size is None:
                raise Unread("repeats that are computed")
            return self._meta((size,), self.torch.int64)
        self.trace.notes["results as long as values say are taken as long as they can be"] = None
        if name == "aten.nonzero":
            return self._meta((first.numel(), first.dim()), self.torch.int64)
        if name == "aten.bincount":
            return self._meta((max(1, kwargs.get("minlength", args[2] if len(args) > 2 else 1)),), self.torch.int64)
        if name == "aten.unique_dim":
            return (self._meta(first.shape, first.dtype), *(self._meta((first.shape[args[1]],), self.torch.int64),) * 2)
        return (self._meta((first.numel(),), first.dtype), self._meta(first.shape, self.torch.int64),
                self._meta((first.numel(),), self.torch.int64))  # fmt: skip

    def _scalar(self, tensor: Any) -> Any:
        """Return the value that compiled code asks for, where it is known."""
        self.host_read(tensor)
        real = self.value(tensor)
        return self.guessed(tensor) if real is None else real.item()

    def guessed(self, tensor: Any) -> bool:
        """Return False for an unknown flag, and remember that; whatever else is unknown raises Unread."""
        if tensor.dtype != self.torch.bool:
            raise Unread("a value of a tensor, which only real data would tell")
        self.trace.notes["a branch that hangs on values was taken as if they were false"] = None
        return False

    def _ctc(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return what torch has no shape function for: losses of each row and the table of a CTC loss, or its gradient."""
        if name == "aten._ctc_loss_backward":
            return self._meta(args[1].shape, args[1].dtype)
        steps, rows = args[0].shape[0], args[0].shape[1] if args[0].dim() == 3 else 1
        table = 2 * (args[1].shape[-1] if args[1].dim() == 2 else args[1].shape[0]) + 1
        return self._meta((rows,), args[0].dtype), self._meta((rows, steps, table), args[0].dtype)

    def _count(self, mask: Any) -> int:
        real = self.value(mask)
        if real is None:
            self.trace.notes["results as long as values say are taken as long as they can be"] = None
            return mask.numel()
        return int(real.to(self.torch.bool).sum())

    def _meta(self, shape: Any, dtype: Any) -> Any:
        return self.torch.empty(tuple(shape), dtype=dtype, device="meta")

    def _write(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> None:
        schema = func._schema  # noqa: SLF001
        name = schema.name.replace("::", ".")
        results = [one for one in (made if isinstance(made, tuple | list) else (made,)) if isinstance(one, self.torch.Tensor)]
        if not results:
            return
        inputs: list[int] = []
        arguments = {one.name: self._shown(value, inputs) for one, value in zip(schema.arguments, args, strict=False)}
        arguments.update({key: self._shown(value, inputs) for key, value in kwargs.items()})
        outputs = tuple(self._index(one) for one in results)
        if list(outputs) == inputs[:1] and not name.endswith("_"):
            return  # the same memory seen in the same way: nothing happened
        if len(self.trace.calls) >= MOST_CALLS:
            raise BadInput(f"a model of over {MOST_CALLS} operations", "a smaller one", "trace one of its repeated parts alone")
        node = self.torch._C._current_autograd_node()  # noqa: SLF001 - which backward node runs
        scope = self._scopes.get(node._sequence_nr(), "") if node is not None else self._numbered()  # noqa: SLF001
        overload = schema.overload_name or "default"
        self.trace.calls.append(Made(name, overload, arguments, tuple(inputs), outputs, scope, node is not None))

    def _numbered(self) -> str:
        """Return the module that runs, and remember it for the backward nodes that were numbered since the last call."""
        scope = self.stack[-1]
        now: int = self.torch._C._autograd._get_sequence_nr()  # noqa: SLF001
        for number in range(self._sequence, now):
            self._scopes[number] = scope
        self._sequence = now
        return scope

    def _shown(self, value: Any, inputs: list[int]) -> object:
        if isinstance(value, self.torch.Tensor):
            inputs.append(self._index(value))
            return At(inputs[-1])
        if isinstance(value, list | tuple):
            return tuple(self._shown(one, inputs) for one in value)
        return value if isinstance(value, str | int | float | bool | None) else self.dtypes.get(value, str(value))

    def _index(self, tensor: Any, name: str = "", role: str = "value") -> int:
        """Return the number of a tensor: the same memory seen in the same way is the same tensor."""
        if tensor.layout is not self.torch.strided:
            raise Unread("sparse tensors")
        storage = tensor.untyped_storage()
        place = storage._cdata  # noqa: SLF001
        seen = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        record = self._storages.get(place)
        if record is None:
            role = "constant" if role == "value" and tensor.device.type != "meta" else role
            record = (len(self.trace.tensors), {}, weakref.ref(storage, lambda _: self._died(place)))
            self._storages[place] = record
        index = record[1].get(seen)
        if index is None:
            index = record[1][seen] = len(self.trace.tensors)
            dtype = self.dtypes.get(tensor.dtype)
            if dtype is None:
                raise Unread(f"tensors of {tensor.dtype}")
            self.trace.tensors.append(Seen(name, tuple(tensor.shape), dtype, role, record[0]))
        return index

    def _died(self, place: int) -> None:
        record = self._storages.pop(place, None)
        self._values.pop(place, None)
        self._given.discard(place)
        if record is not None and self.recording:
            self.trace.deaths[record[0]] = len(self.trace.calls) - 1


def dtypes_of(torch: Any) -> dict[Any, str]:
    """Return the names of torch's dtypes in a graph."""
    names = {
        "float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
        "float8_e4m3fnuz": "fp8", "float8_e5m2fnuz": "fp8", "float8_e8m0fnu": "fp8", "float4_e2m1fn_x2": "fp8", "int64": "int64",
        "int32": "int32", "int16": "int16", "int8": "int8", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32",
        "uint64": "uint64", "bool": "bool", "complex64": "complex64", "complex128": "complex128", "complex32": "complex64",
    }  # fmt: skip
    return {getattr(torch, name): ours for name, ours in names.items() if hasattr(torch, name)}


def tensors_of(torch: Any, value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield the tensors of nested lists, mappings and output classes, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 12 and isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_of(torch, one, depth + 1)
    elif depth < 12 and isinstance(value, list | tuple | set):
        for one in value:
            yield from tensors_of(torch, one, depth + 1)
    elif depth < 12 and hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module):
        yield from tensors_of(torch, list(vars(value).values()), depth + 1)
