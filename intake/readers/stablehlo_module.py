"""MLIR as jaxlib parses it, turned into plain records. The only place that touches jaxlib.

jaxlib alone has the parser; a bare context of it lacks the dialects, which `_context` registers one by one (jax's own maker does
the same, but needs all of jax). Nothing is compiled, evaluated or run.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportMissingImports=false

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from core.errors import BadInput
from core.symbols import Extent
from intake.readers.stablehlo_names import without_primitive
from intake.readers.stablehlo_program import (
    MOST_OPERATIONS,
    Function,
    Instruction,
    Program,
    Region,
    Type,
    Value,
    dtype_of,
    refuse,
    region_of,
)
from intake.readers.stablehlo_values import MOST_ELEMENTS

BYTECODE = b"ML\xefR"
_EXPECTED = "a StableHLO module, as text or bytecode"
_REMEDY = "export it again, for example with jax.jit(f).lower(...).as_text() or jax.export"
_DIALECTS = frozenset({"stablehlo", "func", "chlo", "sdy", "builtin", "vhlo", "mpmd"})
_CONVERT = {
    "mhlo": "convert it with mlir-hlo-opt --hlo-legalize-to-stablehlo, or export it with a newer version of the framework",
    "tosa": "hand in the model that it was made from, as ONNX, SavedModel or .pt2",
    "linalg": "hand in the StableHLO or the model from before it was lowered",
    "tf": "hand in the SavedModel, or convert it with tf-opt --tf-to-stablehlo",
}
_SPACES = re.compile(r"\s+")
_MOST_LOCATIONS = 40
_WITH_REGIONS = frozenset({
    "while", "if", "case", "all_reduce", "reduce", "reduce_window", "map", "manual_computation", "named_computation",
})  # fmt: skip
"""Operations whose bodies are read."""
_ALIASED, _DONOR = "tf.aliasing_output", "jax.buffer_donor"
_NUMBERS = ("_dimensions", "_dimension", "_dims", "_dim", "_map")
"""Ends of the names of the fields in which dialects keep axes."""


@cache
def _context() -> Any:
    """Return a context that knows StableHLO and what comes with it; made once a process."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mhlo, mpmd, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.enable_multithreading(False)
    for register in (
        sdy.register_dialect,
        mhlo.register_mhlo_dialect,
        chlo.register_dialect,
        stablehlo.register_dialect,
        mpmd.register_dialect,
    ):
        register(context)
    return context


def parse(data: bytes, title: str) -> Program:
    """Return the program of a module.

    Args:
        data: text or bytecode, plain or as a portable artifact.
        title: what people call it.

    Raises:
        BadInput: it is none, or holds operations of other dialects.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = _context()
    try:
        with context:
            if data.startswith(BYTECODE):
                module = _bytecode(context, data, ir, stablehlo)
            else:
                module = ir.Module.parse(data.decode("utf-8"), context)
                if "vhlo." in str(next(iter(module.body.operations), "")):
                    text = str(module.operation.get_asm(binary=False))
                    module = stablehlo.deserialize_portable_artifact(context, text.encode())
            return _Reading(ir, stablehlo, title).program(module)
    except UnicodeDecodeError:
        raise refuse("bytes that are neither text nor MLIR bytecode", _EXPECTED, _REMEDY) from None
    except (ir.MLIRError, ValueError, RuntimeError, TypeError) as error:
        raise _refusal(str(error)) from None


def _bytecode(context: Any, data: bytes, ir: Any, stablehlo: Any) -> Any:
    producer = data[4:80]
    if b"StableHLO_v" in producer:
        return stablehlo.deserialize_portable_artifact(context, data)
    return ir.Module.parse(data, context)


def _refusal(message: str) -> BadInput:
    text = _SPACES.sub(" ", message)
    found = re.search(
        r"[Dd]ialect [`']?(\w+)[`']? (?:not found|is not registered|which is not registered)|unregistered dialect [`'](\w+)", text
    )
    if found:
        return _other(found[1] or found[2])
    detail = text.partition("error:")[2] or text
    return refuse(f"MLIR that does not parse ({detail.strip()[:140]})", _EXPECTED, _REMEDY)


def _other(dialect: str) -> BadInput:
    return refuse(f"MLIR of the {dialect[:30]} dialect", _EXPECTED, _CONVERT.get(dialect, _REMEDY))


class _Reading:
    """Turns one module into records."""

    def __init__(self, ir: Any, stablehlo: Any, title: str) -> None:
        self.ir, self.stablehlo, self.title = ir, stablehlo, title
        self.numbers: dict[Any, int] = {}
        self.operations = 0
        self.specifications = ""
        self.bounds: dict[int, int] = {}
        self.types: dict[Any, Type] = {}

    def program(self, module: Any) -> Program:
        functions: dict[str, Function] = {}
        for operation in self._functions(module.operation):
            name = self.ir.StringAttr(operation.attributes["sym_name"]).value
            functions[name] = self._function(operation)
        if not functions:
            raise refuse("a module without functions", _EXPECTED, _REMEDY)
        main = "main" if "main" in functions else next(iter(functions))
        return Program("stablehlo", self.title, functions, main, (), (), self.specifications, tuple(self.bounds.items()),
                       self._devices(module.operation))  # fmt: skip

    def _devices(self, operation: Any) -> int:
        count = 1
        for name in ("mhlo.num_partitions", "mhlo.num_replicas"):
            if name in operation.attributes and isinstance(operation.attributes[name], self.ir.IntegerAttr):
                count *= int(operation.attributes[name].value)
        return count

    def _functions(self, operation: Any) -> Iterator[Any]:
        for region in operation.regions:
            for block in region.blocks:
                for one in block.operations:
                    name = one.operation.name
                    if name == "func.func":
                        yield one
                    elif name == "builtin.module":
                        yield from self._functions(one.operation)
                    elif name.partition(".")[0] not in _DIALECTS:
                        raise _other(name.partition(".")[0])

    def _function(self, operation: Any) -> Function:
        blocks = list(operation.regions[0].blocks)
        if len(blocks) != 1:
            raise refuse("a function that is declared only, or has branches between blocks", _EXPECTED, _REMEDY)
        region = self._region(blocks[0])
        names: list[str] = []
        roles: list[str] = []
        attributes = self._rows(operation, "arg_attrs", len(region.arguments))
        for argument, said in zip(blocks[0].arguments, attributes, strict=True):
            names.append(self._text(said, "jax.arg_info") or self._name(argument.location))
            roles.append("constant" if self._text(said, "jax.global_constant") else "")
        results = [self._text(said, "jax.result_info") for said in self._rows(operation, "res_attrs", len(region.returns))]
        donated = tuple(self._donated(attributes, len(results)))
        return Function(region, tuple(names), tuple(roles), tuple(results), donated)

    def _donated(self, attributes: list[Any], results: int) -> Iterator[tuple[int, int]]:
        for at, said in enumerate(attributes):
            if said is not None and _ALIASED in said:
                result = said[_ALIASED].value if isinstance(said[_ALIASED], self.ir.IntegerAttr) else -1
                yield at, result if 0 <= result < results else -1
            elif said is not None and _DONOR in said:
                yield at, -1

    def _rows(self, operation: Any, name: str, count: int) -> list[Any]:
        rows = list(operation.attributes[name]) if name in operation.attributes else []
        return rows if len(rows) == count else [None] * count

    def _text(self, said: Any, name: str) -> str:
        if said is None or name not in said:
            return ""
        return str(said[name].value)[:300] if isinstance(said[name], self.ir.StringAttr) else ""

    def _region(self, block: Any) -> Region:
        arguments = tuple(self._value(one) for one in block.arguments)
        body: list[Instruction] = []
        returns: tuple[int, ...] = ()
        for operation in block.operations:
            name = operation.operation.name
            if name in {"stablehlo.return", "func.return", "sdy.return"}:
                returns = tuple(self._number(one) for one in operation.operands)
            else:
                body.append(self._instruction(operation, name))
        return region_of(arguments, body, returns)

    def _instruction(self, operation: Any, name: str) -> Instruction:
        dialect, _, op = name.partition(".")
        if dialect not in _DIALECTS:
            raise _other(dialect)
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise refuse(f"over {MOST_OPERATIONS} operations", "a model", "hand in one step of the model")
        attributes = self._constant(operation) if op == "constant" else self._attributes(operation)
        if op == "custom_call" and attributes.get("call_target_name") == "shape_assertion" and not self.specifications:
            self.specifications = str(attributes.get("error_message", ""))[:4000]
        regions: tuple[Region, ...] = ()
        if op in _WITH_REGIONS:
            regions = tuple(self._region(block) for region in operation.regions for block in region.blocks)
        if op == "map" and regions:
            attributes["operations"] = max(1, len(regions[0].body))
        location = self._name(operation.location)
        if op in {"call", "composite"}:
            attributes["path"] = location
        if op in {"manual_computation", "named_computation"}:
            op = "call"
        results = tuple(self._value(one) for one in operation.results)
        return Instruction(
            name,
            op,
            tuple(self._number(one) for one in operation.operands),
            results,
            attributes,
            regions,
            without_primitive(location),
        )

    def _attributes(self, operation: Any) -> dict[str, object]:
        found: dict[str, object] = {}
        for named in operation.attributes:
            name = named if isinstance(named, str) else named.name
            attribute = operation.attributes[name] if isinstance(named, str) else named.attr
            if name in {
                "dimension_numbers",
                "scatter_dimension_numbers",
                "dot_dimension_numbers",
                "ragged_dot_dimension_numbers",
            }:
                found.update(self._dimension_numbers(attribute))
            else:
                found[str(name)] = self._plain(attribute)
        return found

    def _dimension_numbers(self, attribute: Any) -> dict[str, object]:
        dialect = self.stablehlo
        for kind in (
            dialect.DotDimensionNumbers,
            dialect.ConvDimensionNumbers,
            dialect.GatherDimensionNumbers,
            dialect.ScatterDimensionNumbers,
        ):
            if kind.isinstance(attribute):
                read = kind(attribute)
                return {one: _numbers(getattr(read, one)) for one in dir(kind) if one.endswith(_NUMBERS)}
        return {}

    def _plain(self, attribute: Any) -> object:
        ir = self.ir
        if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr):
            return int(attribute.value)
        if isinstance(attribute, ir.StringAttr | ir.FlatSymbolRefAttr):
            return str(attribute.value)
        if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr | ir.DenseBoolArrayAttr):
            return tuple(int(one) for one in attribute)
        if isinstance(attribute, ir.DenseIntElementsAttr):
            return tuple(int(one) for one in attribute) if len(attribute) <= 64 else ()
        if self.stablehlo.ComparisonDirectionAttr.isinstance(attribute):
            return str(self.stablehlo.ComparisonDirectionAttr(attribute).value)
        if isinstance(attribute, ir.DictAttr):
            return str(attribute)[:20000]
        return ()

    def _constant(self, operation: Any) -> dict[str, object]:
        value = operation.attributes["value"]
        ir = self.ir
        if not isinstance(value, ir.DenseElementsAttr):
            return {}
        found: dict[str, object] = {"splat": int(value.is_splat)}
        if value.is_splat and isinstance(value, ir.DenseFPElementsAttr):
            with suppress(TypeError, ValueError):  # nor of floats of 8 bits
                found["number"] = float(ir.FloatAttr(value.get_splat_value()).value)
        if isinstance(value, ir.DenseIntElementsAttr) and len(value) <= MOST_ELEMENTS:
            with suppress(TypeError):  # the bindings have no elements of 2 and 4 bits
                found["value"] = tuple(int(one) for one in value)
        return found

    def _number(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def _value(self, value: Any) -> Value:
        written = value.type
        type_ = self.types.get(written)
        if type_ is None:
            type_ = self.types[written] = self._type(written)
        return Value(self._number(value), type_)

    def _type(self, written: Any) -> Type:
        if not isinstance(written, self.ir.RankedTensorType):
            text = str(written)
            if text.endswith(".token"):
                return (), "token"
            raise refuse(f"a value of the type {text[:80]}", "tensors of known rank", _REMEDY)
        shape: tuple[Extent | None, ...] = tuple(
            None if written.is_dynamic_dim(axis) else written.get_dim_size(axis) for axis in range(written.rank)
        )
        if written.encoding is not None and self.stablehlo.TypeExtensions.isinstance(written.encoding):
            for axis, bound in enumerate(self.stablehlo.TypeExtensions(written.encoding).bounds):
                if bound > 0 and axis < len(shape):
                    self.bounds[axis] = max(self.bounds.get(axis, 0), int(bound))
        return shape, dtype_of(str(written.element_type))

    def _name(self, location: Any) -> str:
        """Return the name in a location; the innermost call's where it is a chain of calls."""
        ir = self.ir
        for _ in range(_MOST_LOCATIONS):
            if isinstance(location, ir.NameLoc):
                return str(location.name_str)[:600]
            if isinstance(location, ir.CallSiteLoc):
                location = location.callee
            elif isinstance(location, ir.FusedLoc) and location.locations:
                location = location.locations[0]
            else:
                break
        return ""


def _numbers(value: Any) -> object:
    return int(value) if isinstance(value, int) else tuple(int(one) for one in value)
