"""Writes models of transformers in the formats that PyTorch's own exporters write; runs in the interpreter that has them.

    PYTHON -m bench.formats_export '[{"kind": ..., ...}, ...]' FOLDER pt2|onnx|onnx_old|stablehlo ...

It imports nothing of Tandem, so that it runs in environments that hold an exporter alone. Each line on stdout is JSON: the
model's own count of parameters, the FLOPs by torch's FlopCounterMode, and the file or folder that was written, or the fault.
"""

import contextlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def model_of(asked: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the model, which gives its first result alone, and the tensors that it is called with.

    Args:
        asked: `kind` (model_type), `model` (class), `config` (keys that differ from the configuration class), and `inputs`, name
            and shape of each; one whose name ends with `ids` holds token numbers, others fractions.
    """
    import torch
    import transformers

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            config = transformers.AutoConfig.for_model(asked["kind"], **asked["config"])
            config.use_cache = False
            self.inner = getattr(transformers, asked["model"])(config)
            if self.inner._can_set_experts_implementation():  # noqa: SLF001 - whether it has experts
                # grouped products have no counterpart in ONNX and XLA; these gather the chosen experts' weights
                self.inner.set_experts_implementation("batched_mm")
            self.names = [name for name, _ in asked["inputs"]]

        def forward(self, *given: Any) -> Any:
            return self.inner(**dict(zip(self.names, given, strict=True)), return_dict=False)[0]

    made = First().eval().requires_grad_(False)
    torch.manual_seed(0)
    for one in made.parameters():
        one.normal_(0, 0.02)  # the exporter to ONNX keeps one of several that are equal, as all biases of a new model are
    given = tuple(torch.randint(2, 90, tuple(shape)) if name.endswith("ids") else torch.rand(tuple(shape))
                  for name, shape in asked["inputs"])  # fmt: skip
    return made, given


def flop_of(model: Any, given: tuple[Any, ...]) -> int:
    """Return the FLOPs of products, convolutions and attention by FlopCounterMode: attention unfused, so that all is counted."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*given)
    return counter.get_total_flops()


def _pt2(model: Any, given: tuple[Any, ...], _names: Sequence[str], folder: Path) -> Path:
    import torch

    path = folder / "model.pt2"
    torch.export.save(torch.export.export(model, given, strict=False), path)
    return path


def _onnx(model: Any, given: tuple[Any, ...], names: Sequence[str], folder: Path) -> Path:
    import torch

    path = folder / "model.onnx"
    # its optimizer would fold norms into convolutions and tables into constants: another model than the one that is compared
    torch.onnx.export(
        model, given, path, input_names=list(names), dynamo=True, optimize=False, verbose=False, external_data=False
    )
    return path


def _onnx_old(model: Any, given: tuple[Any, ...], names: Sequence[str], folder: Path) -> Path:
    import torch

    path = folder / "old.onnx"
    # constants are not folded: a folded transpose of a weight would be another tensor than the model's
    torch.onnx.export(model, given, path, input_names=list(names), dynamo=False, opset_version=17, do_constant_folding=False)
    return path


def _stablehlo(model: Any, given: tuple[Any, ...], _names: Sequence[str], folder: Path) -> Path:
    import torch
    from torch_xla.stablehlo import exported_program_to_stablehlo

    # fused attention gives strides that torch_xla's interpreter cannot view (torch 2.9); these products are the same
    model.inner.set_attn_implementation("eager")
    exported_program_to_stablehlo(torch.export.export(model, given, strict=False)).save(folder / "stablehlo")
    return folder / "stablehlo"


WRITERS = {"pt2": _pt2, "onnx": _onnx, "onnx_old": _onnx_old, "stablehlo": _stablehlo}


def _exported(asked: Mapping[str, Any], folder: Path, forms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what came of one model, for each format; an exporter may raise whatever it likes, and the row says so."""
    try:
        model, given = model_of(asked)
        counts = {"parameters": sum(one.numel() for one in model.parameters()), "flop": flop_of(model, given)}
    except Exception as error:  # noqa: BLE001 - as said above
        yield from ({"kind": asked["kind"], "form": form, "fault": _told(error)} for form in forms)
        return
    for form in forms:
        own = folder / f"{asked['kind']}-{form}"
        own.mkdir(exist_ok=True)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                path = WRITERS[form](model, given, [name for name, _ in asked["inputs"]], own)
            yield {"kind": asked["kind"], "form": form, **counts, "path": str(path)}
        except Exception as error:  # noqa: BLE001 - as said above
            yield {"kind": asked["kind"], "form": form, **counts, "fault": _told(error)}


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main(arguments: Sequence[str]) -> int:
    """Build, count and export each model, and print what came of each; a failure is data."""
    folder, forms = Path(arguments[1]), arguments[2:]
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    for asked in json.loads(arguments[0]):
        for told in _exported(asked, folder, forms):
            print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
