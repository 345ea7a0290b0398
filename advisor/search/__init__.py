"""All legal plans of a workload on every pool, priced at once: enumerated, cut by memory, timed by the cost model, best kept."""

from advisor.search.evaluate import Search
from advisor.search.found import Found, PassTime

__all__ = ["Found", "PassTime", "Search"]
