"""How old a fact is, and whether it is past the time for which one should rely on it.

A date that gives only a year or a month stands for its first day, so that a fact is never taken for younger than it may be.
"""

from dataclasses import dataclass
from datetime import date

LIMITS_DAYS = {"spot": 30, "price": 90, "hardware": 730}
"""Days for which a spot price, another price, and a figure of hardware are relied on without being looked at again."""


@dataclass(frozen=True, slots=True)
class Age:
    """How old a fact is.

    Args:
        source_date: as the source gives it: a year, a month or a day.
        days: since then, at most; None when the date cannot be read.
        limit_days: of its kind.
    """

    source_date: str
    days: int | None
    limit_days: int

    @property
    def stale(self) -> bool:
        """Whether it should be looked at again; so it is when its date is not known."""
        return self.days is None or self.days > self.limit_days

    @property
    def words(self) -> str:
        """One phrase for people: `from 2026-01, up to 334 days old, past its 90 days`."""
        if self.days is None:
            return "of unknown date"
        most = "" if len(self.source_date) == 10 else "up to "
        past = f", past its {self.limit_days} days" if self.stale else ""
        return f"from {self.source_date}, {most}{self.days} days old{past}"


def age_of(source_date: str, kind: str, today: date) -> Age:
    """Return how old a fact is on a day.

    Args:
        source_date: `2026`, `2026-08` or `2026-08-22`.
        kind: a key of `LIMITS_DAYS`.
        today: the day to count to.
    """
    return Age(source_date, _days(source_date, today), LIMITS_DAYS[kind])


def price_age(terms: str, source_date: str, today: date) -> Age:
    """Return how old a price is on a day; what may be taken away changes its price sooner.

    Args:
        terms: as in `catalog.offers`.
        source_date: of the price.
        today: the day to count to.
    """
    return age_of(source_date, "spot" if terms.startswith(("spot", "community")) else "price", today)


def _days(source_date: str, today: date) -> int | None:
    whole = source_date + "-01-01"[len(source_date) - 4 :] if len(source_date) in {4, 7} else source_date
    try:
        return max(0, (today - date.fromisoformat(whole)).days)
    except ValueError:
        return None
