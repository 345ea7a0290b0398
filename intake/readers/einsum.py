"""Products that are written as an equation over letters (`bhqd,bhkd->bhqk`): their shape and their work."""

from collections.abc import Sequence

from core.graph import Shape
from core.symbols import Extent, product
from intake.readers.draft import Work
from intake.readers.symbolic import Extents, Unclear

_DOTS = "."


def einsum(extents: Extents, equation: str, shapes: Sequence[Shape]) -> tuple[Shape, tuple[Work, ...]]:
    """Return shape and work of an einsum; more than two operands are multiplied from left to right.

    Args:
        extents: the file's symbols.
        equation: as numpy writes it, with or without `->` and `...`.
        shapes: of the operands.
    """
    terms, wanted = _labels(equation, shapes)
    sizes: dict[str, Extent] = {}
    for labels, shape in zip(terms, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            known = sizes.get(label, 1)
            if known == 1 or extent == 1:
                sizes[label] = extent if known == 1 else known
            else:
                sizes[label] = extents.same(known, extent, "an einsum")
    if unknown := [label for label in wanted if label not in sizes]:
        raise Unclear(f"an einsum {equation[:40]!r} that makes {unknown[0]!r} of nothing")
    result = tuple(sizes[label] for label in wanted)
    if len(terms) == 1:
        lost = set(terms[0]) - set(wanted)
        return result, ((Work("reduce", (product(shapes[0]), product(result))),) if lost else ())
    work: list[Work] = []
    left = terms[0]
    for place, right in enumerate(terms[1:], 1):
        later = {label for term in terms[place + 1 :] for label in term} | set(wanted)
        made = [label for label in dict.fromkeys((*left, *right)) if label in later]
        last = place == len(terms) - 1
        between = None if last else tuple(sizes[label] for label in made)
        work.append(_pair(left, right, later, sizes, result if last else between or (), between))
        left = made
    return result, tuple(work)


def _pair(left: Sequence[str], right: Sequence[str], later: set[str], sizes: dict[str, Extent], made: Shape,
          between: Shape | None) -> Work:
    def extent(labels: set[str]) -> Extent:
        return product(sizes[label] for label in labels)

    both = set(left) & set(right)
    if not both - later and not (set(left) - both and set(right) - both and not both):
        return Work("elementwise", (product(made), 2, 1), between=between)
    dims = (extent(both & later), extent((set(left) - both) & later), extent((set(right) - both) & later), extent(both - later))
    return Work("matmul", dims, between=between)


def _labels(equation: str, shapes: Sequence[Shape]) -> tuple[list[list[str]], list[str]]:
    sides = equation.replace(" ", "").split("->")
    written = sides[0].split(",")
    if len(sides) > 2 or len(written) != len(shapes) or len(equation) > 500:
        raise Unclear(f"an einsum {equation[:40]!r} of {len(shapes)} operands")
    terms = [_one(text, len(shape), equation) for text, shape in zip(written, shapes, strict=True)]
    dots = max((sum(label[0] == _DOTS for label in term) for term in terms), default=0)
    if len(sides) == 2:
        return terms, _one(sides[1], dots + len(sides[1].replace("...", "")), equation)
    counts: dict[str, int] = {}
    for label in (label for term in terms for label in term):
        counts[label] = counts.get(label, 0) + 1
    spread = sorted((label for label in counts if label[0] == _DOTS), key=lambda label: -int(label[1:]))
    return terms, spread + sorted(label for label, count in counts.items() if count == 1 and label[0] != _DOTS)


def _one(text: str, rank: int, equation: str) -> list[str]:
    before, dots, after = text.partition("...")
    letters = [*before, *after]
    hidden = rank - len(letters)
    if hidden < 0 or (hidden and not dots) or not all(letter.isalpha() for letter in letters):
        raise Unclear(f"an einsum {equation[:40]!r} with an operand of {rank} axes")
    return [*before, *(f"{_DOTS}{place}" for place in range(hidden, 0, -1)), *after]
