"""Makes a picture of a graph: what repeats, what it costs forward and backward, what it holds in memory, what moves badly.

Pure functions over `core.graph`; no file, no framework. The formats' readers have said what each operation is.
"""

from intake.picture.draw import picture_of

__all__ = ["picture_of"]
