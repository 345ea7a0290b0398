"""Custom calls: what XLA hands to something outside of it, told by the target's name.

Libraries that are part of a framework's own distribution (LAPACK, cuDNN, cuSOLVER, cuFFT) are what they compute; kernels that
people wrote (Pallas, Triton) are marked `custom`, their arithmetic unknown.
"""

import re

from intake.readers.operations import custom, elementwise
from intake.readers.stablehlo_operations import Made, Step, attention, linalg, made_of, shapes
from intake.readers.symbolic import Unclear

_NOTHING = re.compile(
    r"Sharding|SPMDFullToShardShape|SPMDShardToFullShape|annotate_device_placement|LayoutConstraint|shape_assertion|xla\.sdy\..*"
    r"|@?MoveToHost|MoveToDevice|PinToDevice|InspectSharding|mhlo\.(?:ann|opt)\w*|AllocateBuffer|__xla_internal\w*|platform_index"
    r"|xla_megascale\w*|Pin|Unpin|CreateBuffer|tf\.\w*assert\w*|dynamic_unused"
)
_HOST = re.compile(r"\w*(?:python_\w*callback|host_callback|pure_callback|io_callback)\w*|tf\.call_tf_function", re.IGNORECASE)
_LINALG = re.compile(
    r"(?:lapack|cusolver|hipsolver|magma|hybrid|cublas_(?:get|trsm)|rocsolver|hipblas|cuda_?solver)\w*|Qr|Eigh|EighQR\w*|LuDecomposition"
    r"|Cholesky|TriangularSolve|ProductOfElementaryHouseholderReflectors|Householder\w*|\w*lu_pivots_to_permutation\w*|Svd\w*"
    r"|\w*_(?:geqrf|orgqr|syevd|gesdd|gesvd|getrf|potrf|geev|gees|gehrd|sytrd|trsm|gtsv2)\w*"
)
_FFT = re.compile(r"\w*(?:ducc_fft|cufft|hipfft|pocketfft)\w*")
_SORT = re.compile(
    r"(?:mhlo\.|stablehlo\.|chlo\.)?top_?k|ApproxTopK|PartialReduce|AggregateToTopK|\w*cub_sort\w*|__gpu\$TopK", re.IGNORECASE
)
_RANDOM = re.compile(r"\w*threefry2x32\w*|\w*philox\w*", re.IGNORECASE)
_ATTENTION = re.compile(r"__cudnn\$fmha\w*", re.IGNORECASE)
_CONVOLUTION = re.compile(r"(?:__|cu_d?nn)?(?:cudnn)?\$conv\w*", re.IGNORECASE)
_MATMUL = re.compile(r"__(?:cublas|onednn|hipblas)\w*\$(?:lt\$)?(?:matmul|gemm)\w*|\w*ragged_dot\w*", re.IGNORECASE)
_RNN = re.compile(r"(?:cudnn|miopen)_rnn\w*", re.IGNORECASE)
_KERNELS = ("tpu_custom_call", "mosaic", "triton")
_KERNEL_NAME = re.compile(r'(?:kernel_name|"name"|name)\\?"?\s*[:=]\s*\\?"([A-Za-z_][\w.<>-]{0,60})')


def custom_call(step: Step) -> Made:
    """Return what a custom call does.

    Args:
        step: with the attributes `call_target_name` and, where there is one, `backend_config`.
    """
    target = str(step.attributes.get("call_target_name", "")) or "unnamed"
    if _NOTHING.fullmatch(target):
        return Made(None)
    if _HOST.fullmatch(target):
        moved = made_of(_as(step, "host_callback"))
        return Made(moved.work)
    if _LINALG.fullmatch(target):
        matrices = [shape for shape in shapes(step.operands) if len(shape) >= 2]
        if matrices:
            return linalg(matrices[0])
        return Made(elementwise(step.shape, step.read, 0, "linalg"))
    if _FFT.fullmatch(target):
        return made_of(_as(step, "fft", {"fft_length": ()}))
    if _SORT.fullmatch(target):
        return made_of(_as(step, "sort", {"dimension": max(len(step.operands[0][0]) - 1, 0)}))
    if _RANDOM.fullmatch(target):
        return Made(elementwise(step.shape, step.read, 1, "random"))
    return _library(step, target)


def _library(step: Step, target: str) -> Made:
    try:
        if _ATTENTION.fullmatch(target) and "Backward" not in target:
            made = shapes(step.operands)
            return attention(made[0], made[1], next(shape for shape in shapes(step.results) if len(shape) == 4))
        if _RNN.fullmatch(target) and len(step.operands[0][0]) == 3:
            return made_of(_as(step, "rnn"))
    except (Unclear, StopIteration, ValueError, IndexError):
        pass  # a version of the library's call that has other operands: its arithmetic is unknown
    if _MATMUL.fullmatch(target) and len(step.operands) >= 2 and len(step.operands[1][0]) == 2:
        return made_of(_as(step, "dot"))
    name = target
    if any(kernel in target for kernel in _KERNELS):
        found = _KERNEL_NAME.search(str(step.attributes.get("backend_config", ""))[:20000])
        name = str(step.attributes.get("kernel_name") or (found[1] if found else target))
    library = any(one.fullmatch(target) for one in (_ATTENTION, _CONVOLUTION, _MATMUL, _RNN))
    note = f"the arithmetic of the library call {target[:60]} is not counted" if library else ""
    return Made(custom(name, shapes(step.operands), shapes(step.results)), note=note)


def _as(step: Step, op: str, attributes: dict[str, object] | None = None) -> Step:
    return Step(op, step.operands, step.results, {**step.attributes, **(attributes or {})}, step.read, step.extents)
