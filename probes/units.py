"""Units: a rate is bytes over seconds, and its prefix is decimal. A factor of 1.074 is GiB for GB and nothing else.

Three such factors lie within what a gate on a peak lets pass, so the bytes are counted on the arrays themselves.
"""

_FACTORS = (("KiB for kB", 1.024), ("MiB for MB", 1.024**2), ("GiB for GB", 1.024**3), ("TiB for TB", 1.024**4))
EXACT = 0.01
"""Error of a byte count from which on it is a count of something else."""
_NEAR = 0.006


def mixed_up(claimed: float, counted: float) -> str:
    """Return which unit was taken for which, or nothing when the ratio is that of no such pair."""
    ratio = max(claimed, counted) / min(claimed, counted)
    return next((name for name, factor in _FACTORS if abs(ratio / factor - 1) < _NEAR), "")


def bytes_doubt(claimed: float, counted: float) -> str:
    """Say when the bytes that a kernel claims to move are not those of its arrays.

    Args:
        claimed: by the kernel, read plus written.
        counted: of the arrays that it is given and gives.
    """
    if claimed <= 0 or counted <= 0 or abs(claimed / counted - 1) <= EXACT:
        return ""
    return _said(f"{claimed:.4g} bytes are claimed and the arrays hold {counted:.4g}", claimed, counted)


def rate_doubt(reported: float, unit_bytes: float, traffic_bytes: float, seconds: float) -> str:
    """Say when a rate that someone reports is not bytes over seconds in the unit that it names.

    Args:
        reported: the figure.
        unit_bytes: of the unit named beside it, 1e9 for GB/s.
        traffic_bytes: moved in `seconds`.
        seconds: measured.
    """
    own = traffic_bytes / seconds / unit_bytes
    if reported <= 0 or abs(reported / own - 1) <= EXACT:
        return ""
    return _said(f"a rate of {reported:.4g} is reported and bytes over seconds are {own:.4g}", reported, own)


def _said(what: str, claimed: float, counted: float) -> str:
    name = mixed_up(claimed, counted)
    return f"quarantined: units: {what}" + (f"; that is {name}" if name else "")
