"""What a torch operation is in Tandem's own kinds, from its name, its arguments and shapes alone. Pure: no torch.

Products and what runs over rows have their own files; here are views, copies and elementwise arithmetic, and the way in.
Whatever torch has and the tables do not is taken for one elementwise pass and said so; whatever is not torch's own is custom.
"""

from core.graph import VIEW, Shape
from core.symbols import Extent, value_of
from intake.readers.aten_call import COMPLEX, FLOATS, Call, Work, elements
from intake.readers.aten_products import PRODUCTS
from intake.readers.aten_rows import ROWS

OWN = ("aten", "prims", "prim", "tandem", "quantized_decomposed", "inductor_prims")
"""Namespaces of operations that torch, or the trace, has itself."""
ELSEWHERE = {"transformers.grouped_mm_fallback": "grouped_matmul",
             "transformers.grouped_mm_fallback_backward": "grouped_matmul_backward"}  # fmt: skip
"""Operations of libraries that do what one of torch's own does."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _names("""
    view _unsafe_view reshape t transpose permute expand expand_as squeeze unsqueeze slice select split split_with_sizes chunk
    unbind alias detach as_strided diagonal unfold narrow view_as reshape_as flatten unflatten movedim moveaxis swapaxes
    swapdims view_as_real view_as_complex numpy_T mT mH adjoint lift_fresh lift real imag broadcast_to ravel unsafe_split
    unsafe_split_with_sizes unsafe_chunk tensor_split hsplit vsplit dsplit _reshape_alias lift_fresh_copy _conj conj
    resolve_conj resolve_neg broadcast_tensors meshgrid requires_grad _to_functional detach_copy atleast_1d atleast_2d
    atleast_3d view_copy positive fft_fftshift_view
""")
COPIES = _names("""
    clone _to_copy to type_as copy contiguous cat concat concatenate stack hstack vstack dstack column_stack row_stack
    constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
    repeat tile flip fliplr flipud roll tril triu slice_backward select_backward diagonal_backward slice_scatter select_scatter
    diagonal_scatter as_strided_scatter im2col col2im pixel_shuffle pixel_unshuffle channel_shuffle upsample_nearest1d
    upsample_nearest2d upsample_nearest3d upsample_nearest2d_backward _upsample_nearest_exact2d diag_embed diag rot90
    unfold_backward to_dtype convert_element_type permute_copy transpose_copy expand_copy unsqueeze_copy slice_copy select_copy
    as_strided_copy squeeze_copy block_diag complex polar reflection_pad2d_backward reflection_pad1d_backward
    replication_pad2d_backward repeat_interleave_copy cartesian_prod to_sparse to_dense _pad_enum unfold_copy zero
    native_channel_shuffle vander combinations data to_padded_tensor
""")
FILLS = _names("""
    zeros ones full zeros_like ones_like full_like fill new_zeros new_ones new_full arange linspace logspace eye scalar_tensor
    tril_indices triu_indices iota tensor hann_window hamming_window blackman_window one_hot
""")
RANDOM = _names("""
    rand randn randint randperm rand_like randn_like randint_like bernoulli dropout native_dropout feature_dropout alpha_dropout
    multinomial normal uniform exponential rrelu_with_noise random native_dropout_backward log_normal cauchy geometric poisson
    feature_alpha_dropout _fused_dropout normal_functional inductor_random
""")
_COSTS: tuple[tuple[int, str], ...] = (
    (0, """
        isnan isinf isfinite
     """),
    (4, """
        exp log sqrt rsqrt log1p expm1 exp2 log2 log10 sin cos tan logaddexp logaddexp2 pow float_power hypot xlogy square_root
        log_sigmoid_forward asin acos atan sinh cosh asinh acosh atanh logit sinc angle rsqrt_backward
     """),
    (5, """
        tanh sigmoid silu softplus elu selu celu mish log_sigmoid hardswish silu_backward mish_backward elu_backward
        softplus_backward glu glu_backward hardswish_backward swish log_sigmoid_backward tanhshrink softsign
     """),
    (8, """
        gelu gelu_backward erf erfc erfinv atan2 lgamma digamma i0 special_erf ndtri polygamma erf_backward special_i0e
        special_bessel_j0 upsample_bicubic2d
     """),
    (6, """
        upsample_bilinear2d upsample_linear1d upsample_trilinear3d upsample_bilinear2d_backward _upsample_bilinear2d_aa
        _upsample_bicubic2d_aa upsample_bicubic2d_backward
     """),
    (3, """
        sigmoid_backward tanh_backward addcmul addcdiv lerp cumprod local_response_norm renorm quantize_per_tensor
        quantize_per_channel dequantize_per_tensor dequantize_per_channel fake_quantize_per_tensor_affine
     """),
    (2, """
        hardsigmoid hardtanh leaky_relu prelu threshold_backward add_relu hardsigmoid_backward hardtanh_backward
        leaky_relu_backward prelu_backward _prelu_kernel _prelu_kernel_backward softshrink hardshrink cummax cummin clamp
     """),
    (1, """
        add sub mul div rsub neg abs relu relu6 sign reciprocal square where masked_fill maximum minimum fmax fmin eq ne lt gt
        le ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor floor ceil round
        trunc frac remainder fmod floor_divide true_divide divide multiply subtract cumsum logcumsumexp threshold clamp_min
        clamp_max clip mse_loss_backward smooth_l1_loss_backward huber_loss_backward l1_loss_backward
        binary_cross_entropy_backward sgn heaviside __and__ __or__ __xor__ __lshift__ __rshift__ bitwise_left_shift
        bitwise_right_shift not_equal greater greater_equal less less_equal nan_to_num isin isclose allclose cross dist div_
        add_n diff count _ctc_loss_backward ctc_loss_backward trapezoid is_same_size copysign signbit special_xlog1py deg2rad
        rad2deg masked_fill_backward fft_fftfreq fft_rfftfreq mvlgamma conj_physical abs_backward gcd lcm ldexp nextafter
        cumulative_trapezoid fft_fftshift fft_ifftshift logical_and_ _foreach_add _foreach_mul affine_grid_generator
        linalg_cross
     """),
)
ELEMENTWISE: dict[str, int] = {name: cost for cost, names in _COSTS for name in names.split()}
"""FLOPs of one element: 1 for arithmetic and comparisons, 4 to 8 where a function is evaluated."""


def is_operator(name: str) -> bool:
    """Whether a name is that of one of torch's operations."""
    return any(name in table for table in (VIEWS, COPIES, FILLS, RANDOM, ELEMENTWISE, PRODUCTS, ROWS))


def works_of(call: Call) -> tuple[Work, ...]:
    """Return what a call is, one or several kinds.

    Args:
        call: with shapes and dtypes; the namespace decides whether torch has the operation itself.

    Raises:
        ValueError: an argument is missing or does not fit; says which operation.
    """
    namespace, _, _ = call.op.partition(".")
    name = call.name
    if namespace not in OWN:
        known = ELSEWHERE.get(call.op)
        return tuple(map(_marked, PRODUCTS[known](call))) if known else (_custom(call),)
    if not call.outputs and name not in ROWS:
        return ()
    if name in VIEWS:
        return (Work(VIEW, (), call.outputs[0].dtype),)
    found = PRODUCTS.get(name) or ROWS.get(name)
    try:
        works = found(call) if found and not _pointwise(call) else (_elementwise(call),)
    except (IndexError, TypeError) as error:
        raise ValueError(f"{call.op} with arguments that do not fit ({error})") from None
    return tuple(_marked(work) for work in works)


def _pointwise(call: Call) -> bool:
    """Names that serve two purposes: `max` of two tensors, losses that are not summed."""
    if call.name in ("max", "min"):
        return call.optional("other") is not None
    if "loss" in call.name or call.name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"):
        return call.name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
                             "binary_cross_entropy_with_logits", "kl_div") and bool(call.outputs[0].shape)
    return call.name == "repeat_interleave" and call.overload == "self_int"


def _elementwise(call: Call) -> Work:
    name, result = call.name, call.outputs[0]
    size = _greatest([elements(one) for one in call.outputs])
    read = len(call.tensors())
    if name in FILLS:
        return Work("elementwise", (size, 0, 0), result.dtype)
    if name in COPIES or name == "repeat_interleave":
        return Work("elementwise", (size, 1, 0), result.dtype)
    if name in RANDOM:
        if "dropout" in name and (call.arguments.get("train") is False or call.arguments.get("training") is False):
            return Work(VIEW, (), result.dtype)
        return Work("elementwise", (size, read, 1), result.dtype, ("random",))
    each = ELEMENTWISE.get(name)
    power = call.arguments.get("exponent")
    if name == "pow" and isinstance(power, int | float) and power in (2, 3):
        each = 1
    return Work("elementwise", (size, read, 1 if each is None else each), _arithmetic(call), known=each is not None)


def _greatest(extents: list[Extent]) -> Extent:
    if len(extents) == 1:
        return extents[0]
    names = {name for one in extents if not isinstance(one, int) for monomial, _ in one.terms for name in monomial}
    return max(extents, key=lambda one: value_of(one, dict.fromkeys(names, 1024)))


def _arithmetic(call: Call) -> str:
    """The dtype of the operands where the result is a flag or an index, else that of the result."""
    result = call.outputs[0].dtype
    first = next(iter(call.tensors()), None)
    return first.dtype if first and (result not in (*FLOATS, *COMPLEX) or first.dtype in COMPLEX) else result


def _custom(call: Call) -> Work:
    read, written = (sum((elements(one) for one in shapes), start=0) for shapes in (call.tensors(), call.outputs))
    dtype = next((one.dtype for one in (*call.outputs, *call.tensors())), "fp32")
    return _marked(Work("custom", (0, read, written), dtype, (f"custom:{call.op}"[:100],)))


def _marked(work: Work) -> Work:
    extra = ("fp64",) if work.dtype == "fp64" else ("complex",) if work.dtype in COMPLEX else ()
    if not extra or work.kind == VIEW:
        return work
    return Work(work.kind, work.dims, work.dtype, tuple(dict.fromkeys((*work.marks, *extra))), work.known)


def contiguous(shape: Shape, strides: Shape) -> bool:
    """Whether elements lie in memory in the order of their indices."""
    expected: Extent = 1
    if len(shape) != len(strides):
        return False
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            return False
        expected = expected * extent
    return True
