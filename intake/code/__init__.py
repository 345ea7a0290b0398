"""Reads a code base as data and says what ties it to a device or a framework: findings, scores, and facts for a workload.

Nothing of it is run, imported or resolved. `scan_tree` finds, `score` weighs for a target, `facts` fills a workload's `existing`.
"""

from intake.code.archives import open_archive
from intake.code.facts import facts
from intake.code.kinds import is_wanted
from intake.code.limits import DEFAULT, Limits
from intake.code.scan import scan_tree
from intake.code.scoring import expand, score, scores
from intake.code.source import SourceFile

__all__ = ["DEFAULT", "Limits", "SourceFile", "expand", "facts", "is_wanted", "open_archive", "scan_tree", "score", "scores"]
