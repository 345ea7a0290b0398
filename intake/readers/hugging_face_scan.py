"""Selective scans of state-space models as one operation each, as their kernels on an accelerator are.

Without a kernel, transformers runs them as a Python loop over the tokens. While a trace runs, its function for the scan is one
that asks for a fused operation with the same arguments; it is put back afterwards.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportUntypedBaseClass=false
# torch has no types here: it is imported inside functions, and its objects are Any.

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from intake.readers.torch_functions import scan_function

_FUNCTION = "mamba_selective_scan"


def _scan(hidden_states: Any, dt: Any, A: Any, B: Any, C: Any, D: Any = None, z: Any = None,  # noqa: N803 - the caller's names
          delta_bias: Any = None, delta_softplus: bool = False, return_last_state: bool = False, **_: Any) -> Any:
    del delta_softplus
    extra = [one for one in (D, z, delta_bias) if one is not None]
    made, state = scan_function().apply(hidden_states, dt, A, B, C, *extra)
    return (made, state) if return_last_state else made


@contextmanager
def fused_scans() -> Generator[None]:
    """Let selective scans be one operation while the block runs."""
    kept = {module: getattr(module, _FUNCTION) for name, module in list(sys.modules.items())
            if name.startswith("transformers.models.") and hasattr(module, "__dict__") and _FUNCTION in vars(module)}
    try:
        for module in kept:
            setattr(module, _FUNCTION, _scan)
        yield
    finally:
        for module, function in kept.items():
            setattr(module, _FUNCTION, function)
