"""torch-compile compiles every size for itself: a worker compiles a small and then a real size of the same code."""

from typing import Any

import pytest

from probes.blocks import block_modules
from probes.case import Case

torch: Any = pytest.importorskip("torch")


def test_a_second_size_is_compiled_with_fixed_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[list[Any]] = []

    def keep(graph: Any, inputs: list[Any]) -> Any:
        compiled.append(inputs)
        return graph.forward

    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda *given, **named: real(*given, backend=keep, **named))
    from probes.backends.torch import TorchBackend

    backend = TorchBackend("torch-compile", "cpu")
    for batch in (3, 5, 7):
        sizes = {"batch": batch, "widths": (12, 16, 8), "activation": "relu", "last_activation": "none", "first": 0}
        backend.block_program(Case(block_modules()["dense_tower"], sizes, 1, "forward", "none", "fp32")).run()
    torch.compiler.reset()
    assert all(isinstance(one, torch.Tensor) for inputs in compiled for one in inputs), "a size was passed as a variable"
    assert [
        batch for inputs in compiled for tensor in inputs for batch in tensor.shape[:1] if tensor.ndim == 2 and batch in (3, 5, 7)
    ] == [3, 5, 7]
    assert all(type(size) is int for inputs in compiled for tensor in inputs for size in tensor.shape)
