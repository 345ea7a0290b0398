"""How often machines and chips were taken away or failed, as others counted it: events over hours, each with its source.

Clouds promise nothing here and publish little, so that a rate is told from the few counts that there are, and its band from how
far they lie apart. A rate of one's own is a row more in the file.
"""

from dataclasses import dataclass
from functools import cache

from catalog.tables import rows_of

FIRM, REVOCABLE = "firm", "revocable"
"""What nobody takes away, so that it stops by faults alone; and what a cloud may take back (spot, community)."""


@dataclass(frozen=True, slots=True)
class Interruptions:
    """One count.

    Args:
        terms: `firm` or `revocable`.
        cloud: whose machines they were; empty when it speaks of all.
        unit: what the hours are of, `chip` or `machine`.
        events: interruptions that were counted.
        unit_hours: hours of all units together.
        notes: what was counted, one phrase.
    """

    terms: str
    cloud: str
    unit: str
    events: float
    unit_hours: float
    source: str
    source_date: str
    confidence: str
    notes: str

    @property
    def per_hour(self) -> float:
        """Interruptions of one unit in an hour."""
        return self.events / self.unit_hours


@cache
def interruptions(terms: str, cloud: str = "") -> tuple[Interruptions, ...]:
    """Return the counts for terms: those of a cloud where there are any, else all of them.

    Args:
        terms: `FIRM` or `REVOCABLE`.
        cloud: as in `catalog.offers`, in any case; empty for all.
    """
    fitting = tuple(row for row in _all() if row.terms == terms)
    own = tuple(row for row in fitting if row.cloud and row.cloud.lower() == cloud.strip().lower())
    return own or fitting


@cache
def _all() -> tuple[Interruptions, ...]:
    return tuple(
        Interruptions(
            row["terms"], row["cloud"], row["unit"], float(row["events"]), float(row["unit_hours"]),
            row["source"], row["source_date"], row["confidence"], row["notes"],
        )
        for row in rows_of("interruptions.csv")
    )  # fmt: skip
