"""Published measurements, row by row, as runs that the cost model can predict.

Rows come in the format of `catalog/data/measurements.csv`: one metric a row, several rows of one id, notes in words. Nothing is
guessed that decides the result: a run that lacks it is refused with what is missing; smaller things are assumed and said.
"""

from intake.published.rows import Metric, PublishedRun, read_runs, source_of

__all__ = ["Metric", "PublishedRun", "read_runs", "source_of"]
