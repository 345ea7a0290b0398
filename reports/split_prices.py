"""At which prices a split and each pool alone were reckoned, where these differ."""

from core import format as write
from core.split import Split, pool_words


def price_note(split: Split) -> str:
    """Return at which prices the split and each pool alone were reckoned, where they differ; empty where they do not.

    A pool alone is taken where it is cheapest, pools together where one cloud sells them all.
    """
    paid = {(share.pool.accelerator, share.pool.count): share.pool for share in split.shares}
    told: list[str] = []
    for one in split.singles:
        beside = paid.get((one.pool.accelerator, one.pool.count))
        if beside is None or one.pool.price_usd_per_h is None or beside.price_usd_per_h in (None, one.pool.price_usd_per_h):
            continue
        alone, joined = (f"{write.usd(pool.price_usd_per_h)} an hour ({pool.where})" for pool in (one.pool, beside))
        told.append(f"{pool_words(one.pool)} at {alone} alone and at {joined} together")
    why = "a pool alone is taken where it is cheapest, together where one cloud sells all"
    return f"Priced apart, since {why}: {'; '.join(told)}." if told else ""
