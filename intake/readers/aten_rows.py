"""Torch operations over rows: norms, softmax, reductions, lookups, sorts, transforms, factorisations. Pure: no torch."""

from collections.abc import Callable
from functools import partial

from core.graph import VIEW, Shape
from core.symbols import Extent, divided, product
from intake.readers.aten_call import Call, Shaped, Work, axis, broadcast, elements


def _first(call: Call) -> Shaped:
    found = next(iter(call.tensors()), None)
    if found is None:
        raise ValueError(f"{call.op} without a tensor")
    return found


def _layer_norm(call: Call) -> tuple[Work, ...]:
    given = call.optional("input") or call.optional("self") or _first(call)
    count = len(call.several("normalized_shape")) or 1
    if count > len(given.shape):
        raise ValueError(f"{call.op} over {count} axes of {len(given.shape)}")
    cut = len(given.shape) - count
    return (Work("norm", (product(given.shape[:cut]), product(given.shape[cut:])), given.dtype),)


def _group_norm(call: Call) -> tuple[Work, ...]:
    given = call.optional("input") or call.optional("X") or _first(call)
    groups = call.whole("num_groups", call.whole("group", 1))
    width = divided(elements(given), given.shape[0] * groups)
    if width is None:
        raise ValueError(f"{call.op} of {given.shape[1]} channels in {groups} groups")
    return (Work("norm", (given.shape[0] * groups, width), given.dtype),)


def _batch_norm(call: Call) -> tuple[Work, ...]:
    given = call.optional("input") or _first(call)
    if len(given.shape) < 2:
        raise ValueError(f"{call.op} of {len(given.shape)} axes")
    return (Work("norm", (given.shape[1], product((given.shape[0], *given.shape[2:]))), given.dtype),)


def _instance_norm(call: Call) -> tuple[Work, ...]:
    given = call.tensor("input")
    return (Work("norm", (product(given.shape[:2]), product(given.shape[2:])), given.dtype),)


def _softmax(call: Call) -> tuple[Work, ...]:
    given = call.outputs[0]
    if not given.shape:
        return (Work("softmax", (1, 1), given.dtype),)
    along = call.whole("dim", -1) % len(given.shape)
    rows = product(extent for at, extent in enumerate(given.shape) if at != along)
    return (Work("softmax", (rows, given.shape[along]), given.dtype),)


def _cross_entropy(call: Call) -> tuple[Work, ...]:
    given = call.tensor("self")
    classes = given.shape[min(1, len(given.shape) - 1)]
    rows = product((*given.shape[:1], *given.shape[2:])) if len(given.shape) > 1 else 1
    return Work("softmax", (rows, classes), given.dtype), Work("reduce", (rows, 1), given.dtype)


def _reduce(call: Call) -> tuple[Work, ...]:
    given = call.optional("self") or call.optional("input") or _first(call)
    results = sum((elements(one) for one in call.outputs[:1]), start=0)
    return (Work("reduce", (elements(given), results), given.dtype),)


def _pool(call: Call) -> tuple[Work, ...]:
    given, kernel = _first(call), [one for one in call.several("kernel_size") if isinstance(one, int)]
    result = elements(call.outputs[0])
    rank = 3 if "3d" in call.name else 2 if "2d" in call.name else 1
    read = result * product(kernel * (rank if len(kernel) == 1 else 1)) if kernel else elements(given)
    return (Work("reduce", (read, result), given.dtype),)


def _pool_backward(call: Call) -> tuple[Work, ...]:
    return (Work("elementwise", (elements(call.outputs[0]), 1, 1), call.outputs[0].dtype),)


def _nll(call: Call) -> tuple[Work, ...]:
    given = call.optional("self") or _first(call)
    rows = product((*given.shape[:1], *given.shape[2:])) if len(given.shape) > 1 else 1
    return (Work("gather", (rows, 1), given.dtype, ("gather",)),)


def _nll_backward(call: Call) -> tuple[Work, ...]:
    result = call.outputs[0]
    rows = product((*result.shape[:1], *result.shape[2:])) if len(result.shape) > 1 else 1
    fill = Work("elementwise", (elements(result), 0, 0), result.dtype)
    return fill, Work("scatter", (rows, 1), result.dtype, ("scatter",))


def _embedding(call: Call) -> tuple[Work, ...]:
    table, at = call.tensor("weight"), call.tensor("indices")
    return (Work("embedding", (elements(at), table.shape[-1], table.shape[0]), table.dtype),)


def _embedding_bag(call: Call) -> tuple[Work, ...]:
    table, at = call.tensor("weight"), call.tensor("indices")
    read = elements(at) * table.shape[-1]
    lookup = Work("embedding", (elements(at), table.shape[-1], table.shape[0]), table.dtype)
    return lookup, Work("reduce", (read, elements(call.outputs[0])), table.dtype)


def _embedding_backward(call: Call) -> tuple[Work, ...]:
    gradient, result = call.optional("grad_output") or _first(call), call.outputs[0]
    fill = Work("elementwise", (elements(result), 0, 0), result.dtype)
    return fill, Work("scatter", (product(gradient.shape[:-1]), gradient.shape[-1]), gradient.dtype, ("scatter",))


def _select_rows(call: Call) -> tuple[Work, ...]:
    given, at = call.tensor("self"), call.tensor("index")
    rows = elements(at)
    width = product(given.shape) if not given.shape else product(
        extent for axis, extent in enumerate(given.shape) if axis != call.whole("dim", 0) % len(given.shape))
    return (Work("gather", (rows, width), given.dtype, ("gather",)),)


def _gather(call: Call) -> tuple[Work, ...]:
    result = call.outputs[0]
    return (Work("gather", (elements(result), 1), result.dtype, ("gather",)),)


def _indexed(given: Shape, indices: tuple[object, ...]) -> tuple[Extent, Extent, bool]:
    """Return rows, width and whether a mask is among the indices."""
    shapes: list[Shape] = []
    taken: set[int] = set()
    place, masked = 0, False
    for index in indices:
        if not isinstance(index, Shaped):
            place += 1
            continue
        covers = len(index.shape) if index.dtype in ("bool", "uint8") else 1
        masked = masked or index.dtype in ("bool", "uint8")
        shapes.append((elements(index),) if index.dtype in ("bool", "uint8") else index.shape)
        taken.update(range(place, place + covers))
        place += covers
    return product(broadcast(*shapes)), product(extent for at, extent in enumerate(given) if at not in taken), masked


def _index(call: Call) -> tuple[Work, ...]:
    given = call.tensor("self")
    rows, width, masked = _indexed(given.shape, call.several("indices"))
    marks = ("gather", "dynamic_shape") if masked else ("gather",)
    return (Work("gather", (rows, width), given.dtype, marks),)


def _index_put(call: Call) -> tuple[Work, ...]:
    given = call.tensor("self")
    rows, width, masked = _indexed(given.shape, call.several("indices"))
    marks = ("scatter", "dynamic_shape") if masked else ("scatter",)
    return (Work("scatter", (rows, width), given.dtype, marks),)


def _index_add(call: Call) -> tuple[Work, ...]:
    given, at = call.tensor("self"), call.tensor("index")
    along = call.whole("dim", 0) % max(1, len(given.shape))
    width = product(extent for other, extent in enumerate(given.shape) if other != along)
    return (Work("scatter", (elements(at), width), given.dtype, ("scatter",)),)


def _scatter(call: Call) -> tuple[Work, ...]:
    at = call.optional("index") or call.optional("mask") or _first(call)
    return (Work("scatter", (elements(at), 1), call.outputs[0].dtype, ("scatter",)),)


def _dynamic(call: Call, kind: str = "gather") -> tuple[Work, ...]:
    given, result = _first(call), call.outputs[0]
    dims = (1, elements(given)) if kind == "sort" else (elements(result), 1)
    return (Work(kind, dims, given.dtype, (kind, "dynamic_shape")),)


def _sort(call: Call) -> tuple[Work, ...]:
    given = call.optional("self") or _first(call)
    if not given.shape:
        return (Work("sort", (1, 1), given.dtype, ("sort",)),)
    along = call.whole("dim", -1) % len(given.shape)
    rows = product(extent for at, extent in enumerate(given.shape) if at != along)
    return (Work("sort", (rows, given.shape[along]), given.dtype, ("sort",)),)


def _fourier(call: Call) -> tuple[Work, ...]:
    given, result = _first(call), call.outputs[0]
    longer = result if call.name.endswith(("c2r", "irfft", "irfft2", "irfftn", "istft")) else given
    rank = len(longer.shape)
    chosen = call.several("dim")
    axes = call.axes("dim", rank) if chosen else tuple(range(rank)) if call.name.endswith("n") else \
        tuple(range(max(0, rank - 2), rank)) if call.name.endswith("2") else (rank - 1,)
    rows = product(extent for at, extent in enumerate(longer.shape) if at not in axes)
    return (Work("fft", (rows, product(longer.shape[at] for at in axes)), given.dtype, ("fft",)),)


def _stft(call: Call) -> tuple[Work, ...]:
    result, width = call.outputs[0], call.whole("n_fft", 1)
    frames = axis(result.shape, -1 if len(result.shape) < 4 else -2)
    return (Work("fft", (product(result.shape[:1]) * frames, width), _first(call).dtype, ("fft",)),)


def _linalg(call: Call) -> tuple[Work, ...]:
    given = _first(call)
    if len(given.shape) < 2:
        raise ValueError(f"{call.op} of {len(given.shape)} axes")
    return (Work("linalg", (product(given.shape[:-2]), given.shape[-1]), given.dtype, ("linalg",)),)


def _host(call: Call) -> tuple[Work, ...]:
    given = next(iter(call.tensors()), None)
    return (Work("host_sync", (1,), given.dtype if given else "int64", ("host_read",)),)


def _nothing(call: Call) -> tuple[Work, ...]:
    return (Work(VIEW, (), call.outputs[0].dtype if call.outputs else "fp32"),)


_TABLE: tuple[tuple[Callable[[Call], tuple[Work, ...]], str], ...] = (
    (_layer_norm, """
        native_layer_norm layer_norm native_layer_norm_backward rms_norm _fused_rms_norm _fused_rms_norm_backward fused_rms_norm
     """),
    (_group_norm, "native_group_norm group_norm native_group_norm_backward"),
    (_batch_norm, """
        native_batch_norm batch_norm native_batch_norm_backward cudnn_batch_norm cudnn_batch_norm_backward miopen_batch_norm
        _native_batch_norm_legit _native_batch_norm_legit_no_training _native_batch_norm_legit_functional
        _batch_norm_with_update _batch_norm_with_update_functional _batch_norm_no_update batch_norm_backward
     """),
    (_instance_norm, "instance_norm"),
    (_softmax, """
        softmax _softmax log_softmax _log_softmax _safe_softmax _softmax_backward_data _log_softmax_backward_data
        _masked_softmax _masked_softmax_backward special_softmax special_log_softmax
     """),
    (_cross_entropy, "cross_entropy_loss"),
    (_reduce, """
        sum mean var var_mean std std_mean amax amin max min argmax argmin prod norm linalg_vector_norm linalg_norm logsumexp
        any all nansum nanmean count_nonzero mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits kl_div aminmax frobenius_norm trace cosine_similarity cosine_embedding_loss
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d _ctc_loss ctc_loss histc bincount triplet_margin_loss
        margin_ranking_loss hinge_embedding_loss poisson_nll_loss equal segment_reduce
     """),
    (_pool, """
        avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices
        max_pool3d_with_indices lp_pool1d lp_pool2d fractional_max_pool2d
     """),
    (_pool_backward, """
        avg_pool2d_backward avg_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward
        _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward
     """),
    (_nll, "nll_loss_forward nll_loss nll_loss2d_forward nll_loss2d nll_loss_nd"),
    (_nll_backward, "nll_loss_backward nll_loss2d_backward"),
    (_embedding, "embedding"),
    (_embedding_bag, "embedding_bag _embedding_bag _embedding_bag_forward_only"),
    (_embedding_backward, "embedding_dense_backward embedding_backward _embedding_bag_dense_backward"),
    (_select_rows, "index_select"),
    (_gather, "gather take take_along_dim grid_sampler grid_sampler_2d grid_sampler_3d"),
    (_index, "index _unsafe_index"),
    (_index_put, "index_put _unsafe_index_put _index_put_impl"),
    (_index_add, "index_add index_copy index_fill index_reduce"),
    (_scatter, "scatter scatter_add scatter_reduce masked_scatter put grid_sampler_2d_backward grid_sampler_3d_backward"),
    (_dynamic, "nonzero nonzero_static masked_select nonzero_numpy argwhere repeat_interleave"),
    (partial(_dynamic, kind="sort"), "unique _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive"),
    (_sort, "sort topk argsort msort kthvalue median nanmedian mode searchsorted bucketize"),
    (_fourier, """
        _fft_r2c _fft_c2c _fft_c2r fft_fft fft_ifft fft_rfft fft_irfft fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn
        fft_ifftn fft_rfftn fft_irfftn fft_hfft fft_ihfft
     """),
    (_stft, "stft istft"),
    (_linalg, """
        linalg_inv_ex linalg_inv inverse linalg_cholesky_ex linalg_cholesky cholesky cholesky_inverse cholesky_solve linalg_qr
        qr linalg_svd _linalg_svd svd linalg_svdvals linalg_eigh _linalg_eigh linalg_eig linalg_eigvals linalg_eigvalsh
        linalg_solve _linalg_solve_ex linalg_solve_ex linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_det _linalg_det det
        slogdet linalg_slogdet _linalg_slogdet linalg_lstsq linalg_pinv pinverse linalg_matrix_exp matrix_exp triangular_solve
        linalg_solve_triangular lu_unpack geqrf linalg_householder_product linalg_ldl_factor_ex matrix_power linalg_matrix_power
        logdet
     """),
    (_host, "item _local_scalar_dense is_nonzero"),
    (_nothing, """
        empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize set_ _assert_async _assert_scalar
        _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size sym_size sym_numel sym_stride
        _functional_sym_constrain_range _functional_assert_async record_stream
     """),
)
ROWS: dict[str, Callable[[Call], tuple[Work, ...]]] = {name: work for work, names in _TABLE for name in names.split()}
"""By the name of the operation; each raises ValueError where the call lacks what it needs."""
