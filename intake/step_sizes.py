"""The sizes of one step that a document gives or a preset fills in: batch, length, image, or a prompt and an output."""

from collections.abc import Mapping

from core.errors import BadInput
from core.workload import Size
from intake.families import Shape
from intake.fields import Section
from intake.model import ModelChoice
from intake.wording import fault

MOST_BATCH, MOST_LENGTH, MOST_IMAGE = 10**6, 10**7, 16_384
_GENERATING = ("infer", "serve")


def size_of(
    top: Section, key: str, high: int, defaults: Mapping[str, Size], assumed: list[str], why: str = "as the preset says"
) -> int:
    """Return a size that the document or its preset gives, or the default, which is assumed for a reason.

    Args:
        top: the document. key: the size. high: most that it may be.
        defaults: what stands for it.
        assumed: what is filled in is added to it, with `why`.

    Raises:
        BadInput: a size that cannot be used, or none and no default.
    """
    given = top.whole(key, 1, high)
    if given is not None:
        return given
    default = defaults.get(key)
    if not isinstance(default, int):
        raise BadInput(f"no key {key!r}", f"a whole number from 1 to {high:,}", f"add {key}: ...")
    assumed.append(f"{key} {default:,}, {why}")
    return default


def shape_of(
    top: Section, task: str, choice: ModelChoice, shape: Shape, defaults: Mapping[str, Size], assumed: list[str]
) -> Shape:
    """Return the shape of the input: nothing, an image, a length, or a prompt and an output.

    Args:
        top: the document. task: of it.
        choice: the model that was named.
        shape: batch and dtype.
        defaults: what a document of the preset holds when it says nothing.
        assumed: what is filled in is added to it.

    Raises:
        BadInput: a size that the model has no use for, or that cannot be used.
    """
    family = choice.family
    _refuse_unfit(top, task, choice)
    if family.needs == "image":
        image_defaults = defaults or ({"image": choice.image} if choice.image is not None else {})
        return Shape(shape.batch, shape.dtype, image=size_of(top, "image", MOST_IMAGE, image_defaults, assumed))
    if not family.needs:
        return shape
    asked = top.has("prompt") or top.has("output") or ("output" in defaults and not top.has("length"))
    if family.generates and task in _GENERATING and asked:
        if not top.has("output") and "output" not in defaults:
            return Shape(shape.batch, shape.dtype, length=size_of(top, "prompt", MOST_LENGTH, defaults, assumed))
        prompt = size_of(top, "prompt", MOST_LENGTH, defaults, assumed)
        output = size_of(top, "output", MOST_LENGTH, defaults, assumed)
        _check_positions(choice, prompt + output, "prompt + output")
        return Shape(shape.batch, shape.dtype, prompt=prompt, output=output)
    length = size_of(top, "length", MOST_LENGTH, defaults, assumed)
    _check_positions(choice, length, "length")
    return Shape(shape.batch, shape.dtype, length=length)


def _refuse_unfit(top: Section, task: str, choice: ModelChoice) -> None:
    family = choice.family
    fitting = {"length": ("length",), "image": ("image",), "": ()}[family.needs]
    if family.generates and task in _GENERATING:
        fitting = (*fitting, "prompt", "output")
    for key in ("length", "image", "prompt", "output"):
        if top.has(key) and key not in fitting:
            expected = f"no {key} for {task} of a {family.title}"
            raise fault(key, top.values[key], expected, f"remove {key}" + (f" or use {fitting[0]}" if fitting else ""))
    if top.has("length") and (top.has("prompt") or top.has("output")):
        raise fault("length", top.values["length"], "either length, or prompt and output", "remove length")


def _check_positions(choice: ModelChoice, length: int, key: str) -> None:
    positions = choice.config.values.get("positions")
    if isinstance(positions, int) and 0 < positions < length:
        raise fault(
            key, length, f"at most {positions}, the learned positions of the model", f"lower {key} or raise model.positions"
        )
