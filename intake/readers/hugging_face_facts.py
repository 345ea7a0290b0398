"""What a model of transformers says of itself beside its operations: parameters that are active, bytes of its cache."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

from math import prod
from typing import Any

from core.graph import DTYPE_BITS, Graph
from intake.readers.hugging_face_inputs import CACHES, Inputs, cache_of
from intake.readers.torch_fit import FAILURES, Point
from intake.readers.torch_functions import OWN
from intake.readers.torch_recorder import Recorder, tensors_of
from intake.readers.torch_trace import traced
from intake.windows import LOCAL, facts_of_windows, windows_of

_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_topk", "moe_top_k", "moe_k",
           "num_selected_experts", "experts_per_token", "router_top_k", "num_activated_experts", "top_k")  # fmt: skip
_PROBE = 7


def facts_of(module: Any, graph: Graph) -> tuple[tuple[str, int], ...]:
    """Return parameters in total and, of a mixture of experts, those that one token uses.

    Args:
        module: the model.
        graph: of it, whose parameters are counted once where they are tied.
    """
    del graph
    total = sum(one.numel() for one in module.parameters())
    active, experts, chosen = total, 0, 0
    for name, one in module.named_modules():
        if type(one).__name__.endswith("Experts") and not name.endswith("shared_experts"):
            stacked = [weight for weight in one.parameters(recurse=False) if weight.dim() >= 2]
            inner = getattr(one, "config", module.config.get_text_config())
            count = stacked[0].shape[0] if stacked else len(list(one.children()))
            top = next((value for key in _CHOSEN if isinstance(value := getattr(inner, key, None), int)), None)
            if top is None or count <= top:
                continue
            experts, chosen = count, top
            own = sum(weight.numel() for weight in one.parameters())
            active -= own - own * top // count
    found = [("parameters", total)]
    return (
        (*found, ("active_parameters", active), ("experts", experts), ("experts_per_token", chosen)) if experts else tuple(found)
    )


def window_facts(module: Any) -> tuple[tuple[str, int], ...]:
    """Return how far attention looks back, as its text configuration says; nothing where it looks at everything."""
    values = module.config.get_text_config().to_dict()
    kinds = [kind for kind in values.get("layer_types") or () if kind in LOCAL or kind == "full_attention"]
    return facts_of_windows(windows_of(values), len(kinds) or int(values.get("num_hidden_layers") or 0))


def cache_per_token(module: Any, inputs: Inputs) -> tuple[tuple[str, int], ...]:
    """Return bytes that a decoder's cache grows by with each token, and bytes of state that do not grow."""
    import torch

    if not any(name in inputs.names for name in CACHES):
        return ()
    if "input_ids" not in inputs.names or not getattr(module, "can_generate", lambda: False)():
        return ()
    recorder = Recorder(OWN)
    recorder.recording = False
    module.eval()
    try:
        with traced(recorder, {}, fused=True), torch.no_grad():
            made = module(**{**_prompt(recorder, inputs), "use_cache": True})
    except FAILURES:
        return ()
    growing = fixed = 0
    seen: set[int] = set()
    for one in tensors_of(torch, cache_of(made)):
        size = prod(one.shape) * DTYPE_BITS[recorder.dtypes[one.dtype]] // 8
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.dim() >= 3 and one.shape[-2] == _PROBE and one.is_floating_point():
            growing += size // _PROBE
        elif one.is_floating_point() and one.dim() >= 2:
            fixed += size
    return (
        *((("kv_cache_bytes_per_token", growing),) if growing else ()),
        *((("state_bytes_per_sequence", fixed),) if fixed else ()),
    )


def _prompt(recorder: Recorder, inputs: Inputs) -> dict[str, Any]:
    wanted = inputs.training
    inputs.training = False
    try:
        given = inputs.make(recorder, Point(1, _PROBE))
    finally:
        inputs.training = wanted
    return {name: value for name, value in given.items() if not name.startswith("pixel") and name != "image_grid_thw"}
