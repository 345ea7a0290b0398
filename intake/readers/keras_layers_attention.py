"""Keras's attention layers: by heads with their projections, and the plain ones that have no heads."""

from collections.abc import Sequence

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, flat
from intake.readers.plain_json import sequence


def _project(trace: Trace, layer: Layer, name: str, source: Ref, heads: Sequence[int], inner: int = 1) -> Ref:
    """Add a projection: its last `inner` axes become `heads`, with a bias."""
    shape = trace.shape(source)
    before, kept = shape[len(shape) - inner :], shape[: len(shape) - inner]
    operands = [source, trace.weight(layer, f"{name}.kernel", (*before, *heads))]
    if layer.flag("use_bias", True):
        operands.append(trace.weight(layer, f"{name}.bias", heads))
    return trace.matmul(
        layer, f"{layer.kind}.{name}", operands, (1, product(kept), product(heads), product(before)), (*kept, *heads)
    )


def _scores(trace: Trace, layer: Layer, inputs: tuple[Ref, Ref, Ref], sizes: tuple[Extent, Extent, Extent, Extent, Extent, int,
    int],
            masked: tuple[Ref, ...], rate: bool) -> Ref:  # fmt: skip
    """Add scores, their softmax and the weighted sum, as they are written out."""
    batch, heads, kv_heads, queries, keys, wide, deep = sizes
    query, key, value = inputs
    if kv_heads != heads:
        key, value = (trace.elementwise(layer, f"{layer.kind}.repeat", (one,), 0,
            (*trace.shape(one)[:-2], heads, trace.shape(one)[-1]))
                      for one in (key, value))  # fmt: skip
    places = (batch, heads, queries, keys)
    scores = trace.matmul(layer, f"{layer.kind}.scores", (query, key), (batch * heads, queries, keys, wide), places)
    scores = trace.elementwise(layer, f"{layer.kind}.scale", (scores, *masked), 1 + len(masked), places)
    weights = trace.rowwise(layer, f"{layer.kind}.softmax", "softmax", scores, keys)
    if rate:
        trace.note("dropout and noise are left out: they do nothing outside training")
    shape = (*trace.shape(query)[:-1], deep)
    return trace.matmul(layer, f"{layer.kind}.sum", (weights, value), (batch * heads, queries, deep, keys), shape)


def _masks(trace: Trace, call: Call, layer: Layer) -> tuple[Ref, ...]:
    given = [
        one for name in ("attention_mask", "query_mask", "value_mask", "key_mask", "mask") for one in flat(call.kwargs.get(name))
    ]
    if call.kwargs.get("use_causal_mask"):
        trace.note("a causal mask is counted in full, as torch's FlopCounterMode does")
    if layer.config.get("sliding_window"):
        trace.note("sliding window attention is counted in full")
    return tuple(given)


def _inputs(trace: Trace, layer: Layer, call: Call) -> tuple[Ref, Ref, Ref]:
    query, value = call.tensor(0, "query"), call.tensor(1, "value")
    key = call.tensor(2, "key") or value
    if query is None or value is None or key is None:
        raise layer.fault("name", "a call with query and value")
    shapes = [trace.shape(one) for one in (query, value, key)]
    if min(map(len, shapes)) < 3 or any(len(shape) != len(shapes[0]) for shape in shapes):
        raise layer.fault("name", "a query, a value and a key of as many axes, three or more")
    return query, value, key


def multi_head(trace: Trace, layer: Layer, call: Call) -> object:
    """`MultiHeadAttention` and `GroupedQueryAttention`, with projections."""
    query, value, key = _inputs(trace, layer, call)
    grouped = layer.kind != "MultiHeadAttention"
    heads = layer.whole("num_query_heads" if grouped else "num_heads")
    kv_heads = layer.whole("num_key_value_heads") if grouped else heads
    wide = layer.whole("head_dim" if grouped else "key_dim")
    deep = wide if grouped else layer.whole("value_dim", wide)
    if heads % kv_heads:
        raise layer.fault("num_key_value_heads", f"a divisor of {heads} heads")
    queried = _project(trace, layer, "query", query, (heads, wide))
    keyed = _project(trace, layer, "key", key, (kv_heads, wide))
    gate = _project(trace, layer, "gate", query, (heads, deep)) if layer.flag("use_gate") else None
    valued = _project(trace, layer, "value", value, (kv_heads, deep))
    batch, queries, keys = _places(layer, trace.shape(query), trace.shape(key))
    masked, told = _masks(trace, call, layer), bool(call.kwargs.get("return_attention_scores"))
    rate = layer.config.get("dropout") not in (None, 0, 0.0)
    if deep == wide and not told and not rate and len(trace.shape(query)) == 3:
        found = trace.value(layer, trace.shape(queried))
        dims = (batch, heads, kv_heads, queries, keys, wide)
        trace.node(layer, f"{layer.kind}.attention", "attention", dims, (queried, keyed, valued, *masked), (found,))
    else:
        found = _scores(trace, layer, (queried, keyed, valued), (batch, heads, kv_heads, queries, keys, wide, deep), masked, rate)
    if gate is not None:
        found = trace.elementwise(layer, f"{layer.kind}.gate", (found, gate), 6)
    given = layer.config.get("output_shape")
    sizes = [given] if isinstance(given, int) else sequence(given)
    last = trace.shape(query)[-1]
    wanted = [one for one in (sizes or [last]) if isinstance(one, int) and one > 0]
    if grouped or len(wanted) != len(sizes or [last]):
        wanted = [last] if isinstance(last, int) else []
    result = _project(trace, layer, "attention_output", found, wanted, 2)
    return (result, trace.value(layer, (batch, heads, queries, keys))) if told else result


def _places(layer: Layer, query: Shape, key: Shape) -> tuple[Extent, Extent, Extent]:
    """Return (batch, queries, keys): axes that attention does not run over are batch."""
    given = layer.config.get("attention_axes")
    axes = tuple(range(1, len(query) - 1)) if given is None else layer.axes(given, len(query), "attention_axes")
    batch = product(extent for at, extent in enumerate(query[:-1]) if at not in axes)
    return batch, product(query[at] for at in axes), product(key[at] for at in axes)


def plain(trace: Trace, layer: Layer, call: Call) -> object:
    """`Attention` and `AdditiveAttention`: query and value without projections."""
    found = flat(call.args[:1])
    if len(found) < 2 or any(len(trace.shape(one)) != 3 for one in found):
        raise layer.fault("name", "a list of query and value, of three axes each")
    query, value, key = found[0], found[1], found[2] if len(found) > 2 else found[1]
    (batch, queries, wide), keys, deep = trace.shape(query), trace.shape(key)[1], trace.shape(value)[2]
    additive = layer.kind == "AdditiveAttention" or layer.text("score_mode", "dot") == "concat"
    weights = (
        [trace.weight(layer, "scale", (wide,) if layer.kind == "AdditiveAttention" else ())]
        if layer.flag("use_scale", layer.kind == "AdditiveAttention")
        else []
    )
    if layer.kind == "Attention" and additive:
        weights.append(trace.weight(layer, "concat_score_weight", ()))
    places = (batch, queries, keys)
    if additive:
        spread = trace.elementwise(layer, f"{layer.kind}.scores", (query, key, *weights), 7, (batch, queries, keys, wide))
        scores = trace.reduce(layer, f"{layer.kind}.sum_scores", spread, places)
    else:
        scores = trace.matmul(layer, f"{layer.kind}.scores", (query, key), (batch, queries, keys, wide), places)
        if weights:
            scores = trace.elementwise(layer, f"{layer.kind}.scale", (scores, *weights), 1, places)
    if masked := _masks(trace, call, layer):
        scores = trace.elementwise(layer, f"{layer.kind}.mask", (scores, *masked), 2, places)
    shares = trace.rowwise(layer, f"{layer.kind}.softmax", "softmax", scores, keys)
    result = trace.matmul(layer, f"{layer.kind}.sum", (shares, value), (batch, queries, deep, keys), (batch, queries, deep))
    return (result, shares) if call.kwargs.get("return_attention_scores") else result


TABLE: Registry = {
    "MultiHeadAttention": multi_head, "GroupQueryAttention": multi_head, "GroupedQueryAttention": multi_head,
    "Attention": plain, "AdditiveAttention": plain,
}  # fmt: skip
