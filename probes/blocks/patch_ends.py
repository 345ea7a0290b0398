"""Both ends of a vision transformer: patches, class token and positions at the start, norm, classifier and loss at the end."""

from typing import Any

from probes.blocks import Sizes
from probes.layers import Input, Layer, Shape, conv, dense, norm, table

ENDS_IN_LOSS = True


def layers(sizes: Sizes) -> dict[str, Layer]:
    """Return the layers by name."""
    width, patch = sizes["width"], sizes["patch"]
    count = (sizes["image"] // patch) ** 2
    return {
        "patches": conv(sizes["channels"], width, patch, patch, bias=True),
        "class_token": table(1, width),
        "positions": table(count + 1, width),
        "final_norm": norm("layer", width),
        "head": dense(width, sizes["classes"]),
    }


def inputs(sizes: Sizes) -> dict[str, Input]:
    """Return images (batch, image, image, channels) and labels (batch,)."""
    image = (sizes["batch"], sizes["image"], sizes["image"], sizes["channels"])
    return {"x": Input("image", image), "labels": Input("token", (sizes["batch"],), sizes["classes"])}


def begin(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the embedded patches behind the class token (batch, patches + 1, width)."""
    x = ops.patches(layers["patches"], inputs["x"])
    x = ops.prepend(layers["class_token"], x)
    return ops.add(x, ops.rows(layers["positions"], (sizes["image"] // sizes["patch"]) ** 2 + 1))


def finish(ops: Any, layers: Any, x: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return the mean cross entropy when training, else logits (batch, classes)."""
    logits = ops.dense(layers["head"], ops.first_position(ops.norm(layers["final_norm"], x)))
    return ops.cross_entropy(logits, inputs["labels"]) if ops.training else logits


def forward(ops: Any, layers: Any, inputs: Any, sizes: Sizes) -> Any:
    """Return what `finish` makes of what `begin` made."""
    return finish(ops, layers, begin(ops, layers, inputs, sizes), inputs, sizes)


def output(sizes: Sizes) -> Shape:
    """Return the shape between the ends (batch, patches + 1, width)."""
    return (sizes["batch"], (sizes["image"] // sizes["patch"]) ** 2 + 1, sizes["width"])


def small(sizes: Sizes) -> Sizes:
    """Return four patches."""
    return sizes | {"batch": 2, "image": 8, "patch": 4, "width": 16, "classes": 10}


def chains(sizes: Sizes) -> bool:
    """Logits are not images."""
    return False


def first(sizes: Sizes) -> bool:
    """It starts at the data."""
    return True
