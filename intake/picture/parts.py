"""Which operations of a graph make up a block, and which blocks are equal: by module paths, or by the sequence of operations."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.graph import VIEW, Graph

_NUMBER = re.compile(r"(?:^|(?<=[._]))\d+(?=$|\.)")
FEWEST_OPERATIONS, MOST_EQUAL = 2, 8
"""Of a sequence that is looked for where no module path tells what repeats; equal ones in it, of at least one operation."""


@dataclass(frozen=True, slots=True)
class Part:
    """One block of the model.

    Args:
        name: path with `*` in place of the number of a repeated module.
        members: for each repeat, its path and the indices of its forward nodes.
    """

    name: str
    members: tuple[tuple[str, tuple[int, ...]], ...]


def parts_of(graph: Graph) -> list[Part]:
    """Return the parts of a graph in the order of their first operation; every forward node is in one of them."""
    forward = [at for at, node in enumerate(graph.nodes) if node.phase == "forward"]
    if not any(_NUMBER.search(graph.nodes[at].scope) for at in forward):
        graph = _with_found_scopes(graph, forward)
    found = _split(graph, forward, "")
    return sorted(found, key=lambda part: part.members[0][1][0])


def _split(graph: Graph, nodes: Sequence[int], prefix: str) -> list[Part]:
    """Split nodes by the next number in their paths behind a prefix; equal instances of a list become one part."""
    lists: dict[str, dict[str, list[int]]] = {}
    rest: dict[str, list[int]] = {}
    for at in nodes:
        scope = graph.nodes[at].scope
        number = _NUMBER.search(scope, len(prefix))
        if number is None:
            rest.setdefault(_short(scope, prefix), []).append(at)
        else:
            lists.setdefault(scope[: number.start()], {}).setdefault(scope[: number.end()], []).append(at)
    parts = [Part(name, ((name, tuple(inside)),)) for name, inside in rest.items()]
    for stem, instances in lists.items():
        parts += _of_list(graph, stem, instances)
    return parts


def _of_list(graph: Graph, stem: str, instances: dict[str, list[int]]) -> list[Part]:
    alike: dict[object, list[str]] = {}
    for path, inside in instances.items():
        alike.setdefault(_signature(graph, inside), []).append(path)
    repeated = [paths for paths in alike.values() if len(paths) > 1]
    if sum(map(len, repeated)) * 2 < len(instances) or (len(instances) == 1 and stem):
        return [part for path, inside in instances.items() for part in _descend(graph, path, inside)]
    parts: list[Part] = []
    for number, paths in enumerate(alike.values()):
        name = f"{stem}*" if len(alike) == 1 else paths[0] if len(paths) == 1 else f"{stem}* ({number + 1} of {len(alike)} kinds)"
        parts.append(Part(name, tuple((path, tuple(instances[path])) for path in paths)))
    return parts


def _descend(graph: Graph, path: str, inside: list[int]) -> list[Part]:
    """Return the parts of one instance: those of its inner lists where it has any of some size, else itself."""
    inner = _split(graph, inside, path)
    return inner if any(len(part.members) > 1 for part in inner) else [Part(path, ((path, tuple(inside)),))]


def _short(scope: str, prefix: str) -> str:
    """Return the first name of a path behind a prefix, with it; the first two without a prefix."""
    names = scope[len(prefix) :].strip(".").split(".")
    return ".".join(filter(None, (prefix.strip("."), *names[: 1 if prefix else 2]))) or "model"


def _signature(graph: Graph, nodes: Sequence[int]) -> object:
    """Return what equal blocks share: their operations with dims, whatever their order."""
    counted = Counter((n.kind, n.dims, n.dtype) for n in (graph.nodes[at] for at in nodes) if n.kind != VIEW)
    return frozenset(counted.items())


def _with_found_scopes(graph: Graph, forward: Sequence[int]) -> Graph:
    """Return the graph with paths `layers.N` for the longest sequence of operations that is repeated one after the other."""
    real = [at for at in forward if graph.nodes[at].kind != VIEW]
    keys: dict[object, int] = {}
    signs = [keys.setdefault((n.op, n.kind, n.dims, n.dtype), len(keys)) for n in (graph.nodes[at] for at in real)]
    start, period, repeats = _longest_repeat(signs)
    if repeats < 2:
        return graph
    nodes = list(graph.nodes)
    for number in range(repeats):
        first, last = real[start + number * period], real[start + (number + 1) * period - 1]
        for at in range(first, last + 1):
            nodes[at] = replace(nodes[at], scope=f"layers.{number}")
    for at in range(len(nodes)):
        if not nodes[at].scope:
            side = "before" if at < real[start] else "after"
            nodes[at] = replace(nodes[at], scope=side)
    return replace(graph, nodes=tuple(nodes))


def _longest_repeat(signs: Sequence[int]) -> tuple[int, int, int]:
    """Return start, period and repeats of the tandem repeat that covers most; the shortest period of equal cover wins.

    A sequence repeats with period p where it equals itself p later; only distances between equal operations can be periods.
    """
    places: dict[int, list[int]] = {}
    for at, sign in enumerate(signs):
        places.setdefault(sign, []).append(at)
    # an operation that occurs several times in a period comes back after several of its own kind
    distances = Counter(b - a for found in places.values() for turn in range(1, MOST_EQUAL + 1)
                        for a, b in zip(found, found[turn:], strict=False))  # fmt: skip
    best = (0, 0, 0, 1)
    for period, _ in distances.most_common(64):
        if period < FEWEST_OPERATIONS:
            continue
        run = 0
        for at in range(len(signs) - period):
            run = run + 1 if signs[at] == signs[at + period] else 0
            repeats = run // period + 1
            if repeats > 1 and (repeats * period, -period) > (best[0], -best[2]):
                best = (repeats * period, at - run + 1, period, repeats)
    return best[1], best[2], best[3]
