"""Both ends of a token model: embeddings at the start, final norm, vocabulary head and cross entropy at the end."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, dense, embedding, norm, table

ENDS_IN_LOSS = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    width, vocabulary = sizes["width"], sizes["vocabulary"]
    result = {"tokens": embedding(vocabulary, width)}
    if sizes["positions"]:
        result["positions"] = table(sizes["positions"], width)
    if sizes["segments"]:
        result["segments"] = table(sizes["segments"], width)
    if sizes["embed_norm"]:
        result["embed_norm"] = norm("layer", width)
    if sizes["final_norm"] != "none":
        result["final_norm"] = norm(sizes["final_norm"], width)
    if sizes["transform"]:
        result |= {"transform": dense(width, width), "transform_norm": norm("layer", width)}
    if sizes["tied"]:
        if sizes["head_bias"]:
            result["head_bias"] = table(vocabulary)
    else:
        result["head"] = dense(width, vocabulary, bool(sizes["head_bias"]))
    return result


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return tokens and labels, both (batch, length)."""
    shape = (sizes["batch"], sizes["length"])
    return {"x": Input("token", shape, sizes["vocabulary"]), "labels": Input("token", shape, sizes["vocabulary"])}


def begin(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the embedded tokens (batch, length, width)."""
    x = ops.embedding(layers["tokens"], inputs["x"])
    if sizes["positions"]:
        x = ops.add(x, ops.rows(layers["positions"], sizes["length"]))
    if sizes["segments"]:
        x = ops.add(x, ops.rows(layers["segments"], 1))
    if sizes["embed_norm"]:
        x = ops.norm(layers["embed_norm"], x)
    return x


def finish(ops: Any, layers: Any, x: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the mean cross entropy when training, else logits (batch, length, vocabulary)."""
    if sizes["final_norm"] != "none":
        x = ops.norm(layers["final_norm"], x)
    if sizes["transform"]:
        x = ops.norm(layers["transform_norm"], ops.activation("gelu", ops.dense(layers["transform"], x)))
    if sizes["tied"]:
        logits = ops.tied_head(layers["tokens"], x)
        if sizes["head_bias"]:
            logits = ops.add(logits, ops.rows(layers["head_bias"], sizes["vocabulary"]))
    else:
        logits = ops.dense(layers["head"], x)
    return ops.cross_entropy(logits, inputs["labels"]) if ops.training else logits


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return what `finish` makes of what `begin` made."""
    return finish(ops, layers, begin(ops, layers, inputs, sizes), inputs, sizes)


def output(sizes: Sizes) -> Shape:
    """Return the shape between the ends (batch, length, width)."""
    return (sizes["batch"], sizes["length"], sizes["width"])


def small(sizes: Sizes) -> Sizes:
    """Return a vocabulary of 48."""
    return sizes | {
        "batch": 2,
        "length": 6,
        "width": 16,
        "vocabulary": 48,
        "positions": 8 if sizes["positions"] else 0,
        "segments": 2 if sizes["segments"] else 0,
    }


def chains(sizes: Sizes) -> bool:
    """Logits are not tokens."""
    return False


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
