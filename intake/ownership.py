"""What an hour of one's own accelerator costs: capital over its life, hosting, and power, with the arithmetic said.

Own hardware is not free: a pool of it is compared with rented ones by what a chip costs in an hour of work. Capital and hosting
run whether or not there is work, so they are spread over the hours of work; power is drawn while it works, at the board's
power by the catalog. Interest, the machine around the boards where `capital_usd` leaves it out, and cooling beyond what
`power_usd_per_kwh` is meant to hold are not in it.
"""

from core.device import HOURS_PER_YEAR, Accelerator, Ownership
from core.errors import BadInput
from intake.fields import Section

KEYS = ("capital_usd", "years", "power_usd_per_kwh", "utilisation", "hosting_usd_per_h")


def ownership_of(path: str, value: object, chip: Accelerator, count: int) -> Ownership:
    """Return what one chip costs for an hour of work, and how that comes about.

    Args:
        path: where the mapping stands in the document.
        value: a mapping of `capital_usd` and `hosting_usd_per_h`, both of the whole pool, `years` of use, `power_usd_per_kwh`,
            and `utilisation`, the share of all hours with work; capital and years must be there.
        chip: of which the pool is.
        count: chips of the pool.

    Raises:
        BadInput: a value that cannot be used.

    Source: capital / (years x 8,766 h) + hosting, over count x utilisation, plus power in kW x price.
    """
    section = Section(path, value, KEYS)
    capital, years = section.number("capital_usd", 0, 1e12), section.number("years", 0.1, 50)
    if capital is None or years is None:
        raise BadInput(f"{path} without capital_usd and years", "both: what the pool cost, and years of use",
                       "write price: {capital_usd: 300000, years: 4}")  # fmt: skip
    share = section.number("utilisation", 0.01, 1)
    hosting = section.number("hosting_usd_per_h", 0, 1e9)
    used = 1.0 if share is None else share
    fixed = (capital / (years * HOURS_PER_YEAR) + (hosting or 0.0)) / count
    power, power_said = _power(section.number("power_usd_per_kwh", 0, 100), chip)
    parts = [f"{capital:,.0f} USD over {years:g} years of 8,766 h"]
    parts += [f"{hosting:g} USD an hour of hosting"] if hosting else []
    spread = f"spread over {count} chips at work {100 * used:g} % of the time"
    assumed = "" if share is not None else ", since no utilisation was given"
    said = f"{' and '.join(parts)}, {spread}{assumed}, is {fixed / used:.4g} USD a chip-hour; {power_said}"
    return Ownership(fixed, power, used, said)


def _power(usd_per_kwh: float | None, chip: Accelerator) -> tuple[float, str]:
    if usd_per_kwh is None:
        return 0.0, "power is not counted, since no price of it was given"
    if chip.power_w is None:
        return 0.0, f"power is not counted, since the catalog does not know what a {chip.key} draws"
    usd = chip.power_w / 1000 * usd_per_kwh
    return usd, f"{chip.power_w:g} W of the board alone, without host and cooling, at {usd_per_kwh:g} USD a kWh add {usd:.4g}"
