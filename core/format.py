"""How numbers are written for people: the only place that knows GiB, milliseconds and thousands."""

from collections.abc import Callable

from core.quantity import Quantity

_TIMES = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_NO_TIME = 1e-13
"""Seconds below which a duration is what rounding left over."""
_COUNTS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
MISSING = "—"


def three_digits(value: float) -> str:
    """Return a number with three significant digits and no exponent."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    if magnitude >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}"


def seconds(value: float | None) -> str:
    """Return a duration in its natural unit: `12.3 ms`, `4.50 s`, `2.10 h`."""
    if value is None:
        return MISSING
    for size, unit in _TIMES:
        if abs(value) >= size:
            return f"{three_digits(value / size)} {unit}"
    return "0 s" if abs(value) < _NO_TIME else f"{three_digits(value / 1e-9)} ns"


def count(value: float | None, unit: str = "") -> str:
    """Return a count with an SI prefix: `124 M`, `1.02 TFLOP`."""
    if value is None:
        return MISSING
    for size, prefix in _COUNTS:
        if abs(value) >= size:
            return f"{three_digits(value / size)} {prefix}{unit}"
    return f"{three_digits(value)} {unit}".rstrip()


def memory(value: float | None) -> str:
    """Return bytes in KiB, MiB, GiB or TiB."""
    if value is None:
        return MISSING
    for size, unit in _BYTES:
        if abs(value) >= size:
            return f"{three_digits(value / size)} {unit}"
    return f"{value:.0f} B"


def usd(value: float | None) -> str:
    """Return US dollars: `$1,234`, `$12.30`, `$0.0042`."""
    if value is None:
        return MISSING
    return f"${value:,.0f}" if value >= 100 else f"${value:.2f}" if value >= 0.01 or value == 0 else f"${value:.2g}"


def energy(value: float | None) -> str:
    """Return joules as kWh from 1 kWh on, else kJ or J."""
    if value is None:
        return MISSING
    return f"{three_digits(value / 3.6e6)} kWh" if value >= 3.6e6 else count(value, "J")


def percent(fraction: float | None) -> str:
    """Return a fraction as a whole percentage."""
    return MISSING if fraction is None else f"{100 * fraction:.0f} %"


def chance(probability: float | None) -> str:
    """Return a probability as a whole percentage; a belief is never told as certain."""
    if probability is not None and probability >= 0.995:
        return "over 99 %"
    return "under 1 %" if probability is not None and probability < 0.005 else percent(probability)


def band(quantity: Quantity | None, write: Callable[[float], str] = seconds) -> str:
    """Return `mid (low to high)` with one of this module's writers; a dash when unknown."""
    if quantity is None:
        return MISSING
    if quantity.low == quantity.high:
        return write(quantity.mid)
    return f"{write(quantity.mid)} ({write(quantity.low)} to {write(quantity.high)})"
