"""The allow-list of Keras: which classes are known, and how a config's entry becomes a layer of ours.

A class is known by its name and by where it says that it comes from; anything else (`Lambda`, a registered class of somebody, a
module that is not Keras's) is never looked for, let alone run: it becomes a custom operation with the shape that the file states.
"""

from collections.abc import Mapping

from core.errors import BadInput
from intake.readers import (
    keras_layers_attention,
    keras_layers_conv,
    keras_layers_core,
    keras_layers_norm,
    keras_layers_ops,
    keras_layers_preprocess,
    keras_layers_recurrent,
    keras_layers_shape,
)
from intake.readers.keras_layers_base import Call, Layer, Registry, Trace, policy_of
from intake.readers.plain_json import is_mapping, mapping, sequence

LAYERS: Registry = {
    **keras_layers_core.TABLE, **keras_layers_conv.TABLE, **keras_layers_shape.TABLE, **keras_layers_norm.TABLE,
    **keras_layers_attention.TABLE, **keras_layers_recurrent.TABLE, **keras_layers_preprocess.TABLE, **keras_layers_ops.TABLE,
}  # fmt: skip
MODELS = ("Functional", "Model", "Sequential")
INPUTS = ("InputLayer",)
CUSTOM = "custom"
_WRAPPED = ("layer", "backward_layer", "cell")
_HOMES = ("keras", "tf_keras", "tensorflow.python.keras", "tensorflow.keras")
DEPTH = 24


def kind_of(entry: Mapping[str, object]) -> str:
    """Return the class that an entry of a config stands for: a key of `LAYERS`, one of `MODELS` or `INPUTS`, or `CUSTOM`."""
    name, module, registered = entry.get("class_name"), entry.get("module"), entry.get("registered_name")
    home = module is None or (isinstance(module, str) and any(module == one or module.startswith(f"{one}.") for one in _HOMES))
    own = registered is None or registered == name or (isinstance(registered, str) and registered.startswith("keras>"))
    if not isinstance(name, str) or not home or not own:
        return CUSTOM
    if isinstance(module, str) and ".ops" in module:
        return f"ops.{name}" if f"ops.{name}" in LAYERS else CUSTOM
    return name if name in LAYERS or name in MODELS or name in INPUTS or name == "StackedRNNCells" else CUSTOM


def make(trace: Trace, entry: object, scope: str, depth: int = 0) -> Layer:
    """Return the layer that an entry of a config describes; one that is shared by several models is made once.

    Args:
        trace: that keeps the shared ones.
        entry: with `class_name` and `config`.
        scope: path of the modules around it.
        depth: of layers within layers.

    Raises:
        BadInput: no entry, or layers nested too deep.
    """
    held = mapping(entry)
    config = mapping(held.get("config"))
    if not isinstance(held.get("class_name"), str) or depth > DEPTH:
        got = f"layers nested deeper than {DEPTH}" if depth > DEPTH else f"a layer without class_name ({entry!r:.60})"
        raise BadInput(got, "layers as Keras writes them", "save the model again with Keras")
    shared = held.get("shared_object_id")
    if isinstance(shared, int) and shared in trace.shared:
        return trace.shared[shared]
    kind = kind_of(held)
    name = str(held.get("name") or config.get("name") or held["class_name"])[:100]
    compute, variable = policy_of(config.get("dtype")) if kind not in (CUSTOM, *INPUTS, *MODELS) else ("fp32", "fp32")
    path = f"{scope}.{name}" if scope else name
    layer = Layer(name, kind if kind != CUSTOM else f"custom:{held['class_name']:.80}", config, path[:300], compute, variable,
                  config.get("trainable") is not False, held.get("build_config"))  # fmt: skip
    for key in _WRAPPED:
        if is_mapping(config.get(key)) and kind != CUSTOM:
            layer.parts[key] = make(trace, config[key], path, depth + 1)
    if kind == "StackedRNNCells":
        for at, one in enumerate(sequence(config.get("cells"))[:1000]):
            layer.parts[str(at)] = make(trace, one, path, depth + 1)
    if isinstance(shared, int):
        trace.shared[shared] = layer
    return layer


def foreign(trace: Trace, layer: Layer, call: Call) -> object:
    """Add a layer that is not Keras's own: never run, with the shape that the file states."""
    name = layer.kind.removeprefix("custom:")
    given = [one for one in sequence(layer.config.get("output_shape")) if isinstance(one, int)] if name == "Lambda" else []
    found = call.every()
    if given and found and not call.declared and len(given) == len(sequence(layer.config.get("output_shape"))):
        call = Call(call.args, call.kwargs, {0: ((None, *given), trace.dtype(found[0]))})
    trace.note(f"{name:.80} ({layer.name:.80}) is not Keras's own: it is not run, its FLOPs and weights are not counted")
    return keras_layers_ops.declared_only(trace, layer, call, "custom", (f"custom:{name:.60}",))
