"""JAX's primitives under StableHLO's names, with their parameters as StableHLO's attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.symbols import Extent
from intake.readers.jaxpr_syntax import fields_of, pieces, whole_numbers
from intake.readers.symbolic import Unclear

Attributes = dict[str, object]


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive as it stands in the text.

    Args:
        name: its name in JAX.
        parameters: texts of them, by name.
        ranks: axes of its operands.
        size: reads a size that may follow symbols.
    """

    name: str
    parameters: Mapping[str, str]
    ranks: tuple[int, ...]
    size: Callable[[str], Extent]

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return the whole numbers of a parameter."""
        return whole_numbers(self.parameters.get(name, ""))


_RENAMED = {
    "mul": "multiply", "sub": "subtract", "div": "divide", "rem": "remainder", "max": "maximum", "min": "minimum",
    "neg": "negate", "exp": "exponential", "expm1": "exponential_minus_one", "log1p": "log_plus_one", "pow": "power",
    "sin": "sine", "cos": "cosine", "add_any": "add", "convert_element_type": "convert", "squeeze": "reshape",
    "expand_dims": "reshape", "rev": "reverse", "population_count": "popcnt", "clz": "count_leading_zeros",
    "nextafter": "next_after", "round": "round_nearest_even", "bitcast_convert_type": "bitcast_convert", "copy_p": "copy",
    "stop_gradient": "optimization_barrier", "device_put": "optimization_barrier", "name": "optimization_barrier",
    "pvary": "optimization_barrier", "pcast": "optimization_barrier", "mesh_cast": "reshard", "ppermute": "collective_permute",
    "pbroadcast": "collective_broadcast", "psum": "all_reduce", "psum2": "all_reduce", "psum_invariant": "all_reduce",
    "pmax": "all_reduce", "pmin": "all_reduce", "psum_scatter": "reduce_scatter", "all_gather_invariant": "all_gather",
    "axis_index": "partition_id", "zeros_like": "broadcast", "empty": "iota", "empty2": "iota", "full_like": "broadcast",
    "random_bits": "rng_bit_generator", "threefry2x32": "rng_bit_generator", "random_split": "rng_bit_generator",
    "random_fold_in": "rng_bit_generator", "random_gamma": "rng_bit_generator", "rng_uniform": "rng", "random_seed": "convert",
    "random_wrap": "bitcast_convert", "random_unwrap": "bitcast_convert", "random_clone": "optimization_barrier", "eye": "iota",
    "to_edtype": "bitcast_convert", "from_edtype": "bitcast_convert", "tie_in": "optimization_barrier", "approx_top_k": "top_k",
    "select_and_gather_add": "reduce_window", "nonbatchable": "optimization_barrier",
    "layout_constraint": "optimization_barrier",
}  # fmt: skip
_COMPARE = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "ne": "NE", "lt_to": "LT", "le_to": "LE", "eq_to": "EQ"}
_LINALG = frozenset({"cholesky", "triangular_solve", "lu", "qr", "eigh", "eig", "svd", "schur", "householder_product",
                     "tridiagonal",
                     "tridiagonal_solve", "hessenberg", "geqrf", "geqp3", "symmetric_product", "cholesky_update"})  # fmt: skip
_HOST = frozenset(
    {"debug_callback", "debug_print", "pure_callback", "io_callback", "host_callback", "outside_call", "infeed", "outfeed"}
)
_REDUCTIONS = (
    "reduce_sum",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_and",
    "reduce_or",
    "reduce_xor",
    "argmax",
    "argmin",
    "reduce",
)
_WINDOWS = frozenset({"reduce_window_sum", "reduce_window_max", "reduce_window_min", "reduce_window", "select_and_gather_add"})


def translated(primitive: Primitive) -> tuple[str, Attributes, tuple[int, ...] | None]:
    """Return a primitive's name and attributes in StableHLO, and the order of its operands where that differs.

    Raises:
        Unclear: its parameters are not as JAX prints them.
    """
    name = primitive.name
    if name in _RULES:
        return _RULES[name](primitive)
    if name in _COMPARE:
        return "compare", {"comparison_direction": _COMPARE[name]}, None
    if name in _LINALG:
        return "linalg", {}, None
    if name in _HOST:
        return "host_callback", {}, None
    if name in _REDUCTIONS:
        axes = primitive.wholes("axes") if "axes" in primitive.parameters else primitive.wholes("dimensions")
        return "reduce", {"dimensions": axes}, None
    if name.startswith("cum"):
        return "cumulative", {}, None
    if name.startswith("scatter"):
        said = fields_of(primitive.parameters.get("dimension_numbers", ""))
        return "scatter", dict(said), None
    if name in _WINDOWS:
        return "reduce_window", _window(primitive), None
    if name == "ffi_call":
        return "custom_call", {"call_target_name": primitive.parameters.get("target_name", "").strip("'\"")}, None
    return _RENAMED.get(name, name), {}, None


def _window(primitive: Primitive) -> Attributes:
    return {
        "window_dimensions": primitive.wholes("window_dimensions"), "window_strides": primitive.wholes("window_strides"),
        "window_dilations": primitive.wholes("window_dilation"), "base_dilations": primitive.wholes("base_dilation"),
        "padding": primitive.wholes("padding"),
    }  # fmt: skip


def _dot(primitive: Primitive) -> tuple[str, Attributes, None]:
    groups = [whole_numbers(one) for pair in pieces(primitive.parameters.get("dimension_numbers", "")) for one in _pair(pair)]
    if len(groups) != 4:
        raise Unclear("a dot_general without its four lists of axes")
    names = ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batching_dimensions", "rhs_batching_dimensions")
    return "dot_general", dict(zip(names, groups, strict=True)), None


def _pair(text: str) -> list[str]:
    found = pieces(text)
    return found if len(found) == 2 else ["", ""]


def _convolution(primitive: Primitive) -> tuple[str, Attributes, None]:
    said = fields_of(primitive.parameters.get("dimension_numbers", ""))
    specs = [said.get(name, ()) for name in ("lhs_spec", "rhs_spec", "out_spec")]
    if any(len(spec) < 2 for spec in specs):
        raise Unclear("a convolution without its dimension numbers")
    left, right, out = specs
    return "convolution", {
        "input_batch_dimension": left[0], "input_feature_dimension": left[1], "input_spatial_dimensions": left[2:],
        "kernel_output_feature_dimension": right[0], "kernel_input_feature_dimension": right[1],
        "kernel_spatial_dimensions": right[2:],
        "output_batch_dimension": out[0], "output_feature_dimension": out[1], "output_spatial_dimensions": out[2:],
        "feature_group_count": primitive.wholes("feature_group_count") or (1,), "lhs_dilation": primitive.wholes("lhs_dilation"),
    }, None  # fmt: skip


def _gather(primitive: Primitive) -> tuple[str, Attributes, None]:
    return "gather", dict(fields_of(primitive.parameters.get("dimension_numbers", ""))), None


def _sort(primitive: Primitive) -> tuple[str, Attributes, None]:
    return "sort", {"dimension": primitive.wholes("dimension") or (-1,)}, None


def _fft(primitive: Primitive) -> tuple[str, Attributes, None]:
    return "fft", {"fft_length": primitive.wholes("fft_lengths")}, None


def _select(primitive: Primitive) -> tuple[str, Attributes, tuple[int, ...] | None]:
    """JAX names the value for false first, StableHLO that for true."""
    return "select", {}, (0, 2, 1) if len(primitive.ranks) == 3 else None


def _spread(primitive: Primitive) -> tuple[str, Attributes, tuple[int, ...]]:
    """JAX names what is spread first, StableHLO what it is spread over."""
    return "select_and_scatter", _window(primitive), (1, 0)


def _concatenate(primitive: Primitive) -> tuple[str, Attributes, None]:
    return "concatenate", {"dimension": primitive.wholes("dimension")}, None


def _slice(primitive: Primitive) -> tuple[str, Attributes, None]:
    starts = primitive.wholes("start_indices")
    return "slice", {"start_indices": starts, "strides": primitive.wholes("strides") or (1,) * len(starts)}, None


def _size(primitive: Primitive) -> tuple[str, Attributes, None]:
    return "constant", {"value": (primitive.size(primitive.parameters.get("dim", "")),), "splat": 0}, None


def _kernel(primitive: Primitive) -> tuple[str, Attributes, None]:
    said = (
        primitive.parameters.get("name")
        or primitive.parameters.get("name_and_src_info")
        or primitive.parameters.get("kernel_name")
        or ""
    )
    name = said.strip("'\" ").split(" ")[0]
    return "custom_call", {"call_target_name": name if name not in {"", "None"} else primitive.name}, None


_RULES: dict[str, Callable[[Primitive], tuple[str, Attributes, tuple[int, ...] | None]]] = {
    "dot_general": _dot, "conv_general_dilated": _convolution, "gather": _gather, "sort": _sort, "fft": _fft, "select_n": _select,
    "select_and_scatter_add": _spread, "select_and_scatter": _spread, "concatenate": _concatenate, "slice": _slice,
    "dim_as_value": _size, "pallas_call": _kernel, "triton_kernel_call": _kernel, "tpu_custom_call": _kernel,
    "mosaic_gpu": _kernel,
    "ragged_dot_general": lambda _: ("ragged_dot", {}, None),
}  # fmt: skip
