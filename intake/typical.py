"""A typical decoder for "a model of 8 billion parameters": what is assumed when nothing but the size is known.

Layers of 12 w^2 parameters (attention 4 w^2, gated MLP 8 w^2 with hidden = 8/3 w), heads of 128, width near 128 x layers.

Source: Kaplan et al., arXiv:2001.08361, section 2.1 (12 w^2) and figure 5 (aspect ratio); Touvron et al., arXiv:2302.13971,
table 2 (Llama sizes).
"""

from core.workload import Size

LOW, HIGH = 1e7, 2e13
_VOCABULARY = 32_000
_TIED_BELOW = 1e9
_ASPECT = 128


def typical_decoder(parameters: float) -> dict[str, Size]:
    """Return the configuration of a Llama-like decoder of about that many parameters.

    Args:
        parameters: trainable parameters, from `LOW` to `HIGH`.
    """
    tied = parameters < _TIED_BELOW
    tables = 1 if tied else 2
    best: tuple[float, int, int] | None = None
    for width in _widths():
        layers = round((parameters - tables * _VOCABULARY * width) / _layer_parameters(width))
        if layers < 1:
            break
        off = abs(width / layers - _ASPECT) / _ASPECT if width / layers > _ASPECT else abs(_ASPECT * layers / width - 1)
        if best is None or off < best[0]:
            best = (off, width, layers)
    _, width, layers = best or (0.0, 128, 1)
    head_width = 128 if width >= 1024 else 64
    return {
        "layers": layers, "width": width, "heads": width // head_width, "head_width": head_width, "hidden": _hidden(width),
        "vocabulary": _VOCABULARY, "positions": 0, "gated": 1, "activation": "silu", "norm": "rms", "bias": 0, "rotary": 1,
        "tied": int(tied), "head_bias": 0, "fused_qkv": 0,
    }


def _widths() -> tuple[int, ...]:
    """Return widths that are tried: multiples of 128, and from 1,024 on those whose heads divide over eight chips."""
    return (*range(128, 1024, 128), *range(1024, 65_536 + 1, 1024))


def _hidden(width: int) -> int:
    """Return 8/3 of the width, up to a multiple of 256, as Llama has it."""
    return -(-8 * width // 3 // 256) * 256


def _layer_parameters(width: int) -> int:
    return 4 * width**2 + 3 * width * _hidden(width) + 2 * width
