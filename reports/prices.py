"""What a pool costs, in words: by the hour and the month, from whom, and what it would be on other terms."""

from core import format as write
from core.device import HOURS_PER_YEAR, Pool
from core.workload import Workload

HOURS_PER_MONTH = HOURS_PER_YEAR / 12


def price_text(pool: Pool, workload: Workload) -> str:
    """Return the price of a pool that has one; of what serves without end also by the month.

    Args:
        pool: with its price.
        workload: that is to run there.
    """
    price = pool.price_usd_per_h or 0.0
    lasting = workload.task == "serve" and price > 0
    month = f" ({write.usd(price * HOURS_PER_MONTH)} a month)" if lasting else ""
    hour = "an hour of work" if pool.own is not None else "an hour"
    hour += f" for {pool.hosts:,} machines" if pool.hosts > 1 else ""
    made = "" if pool.own is None else f": {pool.own.words}"
    said = f"{write.usd(price)} {hour}{month}, {pool.where}{made}".rstrip(", ")
    less = ", ".join(f"{offer.terms} {write.usd(offer.usd_per_h)} ({offer.place})" for offer in pool.other_terms)
    return f"{said}; on other terms {less}" if less else said
