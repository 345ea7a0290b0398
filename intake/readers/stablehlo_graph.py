"""From a program to a graph: walks it, and walks it again where a symbol turned out to have to be a number."""

from collections.abc import Callable, Mapping

from core.graph import Graph
from core.symbols import Extent, Polynomial
from intake.readers.stablehlo_build import Builder, Place
from intake.readers.stablehlo_fusion import fuse
from intake.readers.stablehlo_program import Program, refuse
from intake.readers.stablehlo_roles import assign_phases, assign_roles, mark_scans, name_lookups
from intake.readers.stablehlo_walk import Walk
from intake.readers.symbolic import Extents, Pinned, Unclear

_MOST_TRIES = 24
_MOST_NOTES = 60


def graph_of(program_with: Callable[[Mapping[str, Extent]], Program]) -> Graph:
    """Return the graph of a program.

    Args:
        program_with: gives the program in which symbols are replaced.

    Raises:
        BadInput: it does not go together, or is larger than anything that is read.
    """
    replacements: dict[str, Extent] = {}
    notes: list[str] = []
    try:
        for _ in range(_MOST_TRIES):
            try:
                return _walked(program_with(replacements), notes)
            except Pinned as pinned:
                replacements.update(pinned.replacements)
                notes.extend(f"{name} is fixed at {extent}: {pinned.why}" for name, extent in pinned.replacements.items())
        why = "sizes that depend on one another"
    except Unclear as unclear:
        why = str(unclear)
    except (IndexError, KeyError, TypeError, ValueError) as error:  # of a text that is no program, or of sizes without measure
        why = f"something that does not fit together ({str(error)[:80]})"
    raise refuse(why, "a program whose shapes go together", "export it again, with fixed shapes where it was open")


def _walked(program: Program, notes: list[str]) -> Graph:
    main = program.functions[program.main]
    build = Builder(Extents(dict(program.symbols)))
    arguments: list[int] = []
    for at, value in enumerate(main.region.arguments):
        name = main.names[at] if at < len(main.names) and main.names[at] else f"argument {at}"
        shape = tuple(extent for extent in value.type[0] if extent is not None)
        arguments.append(build.tensor(name, shape, value.type[1], "input"))
    given = {value.number: at for value, at in zip(main.region.arguments, arguments, strict=True)}
    outputs = Walk(program, build).region(main.region, given, Place())
    assign_roles(main, arguments, build)
    name_lookups(build)
    mark_scans(build)
    backward = assign_phases(build, outputs)
    fuse(build, outputs, joined=backward)
    told = [text if count == 1 else f"{text} ({count} times)" for text, count in build.notes.items()]
    return Graph(
        program.format, program.title, tuple(build.tensors), tuple(build.nodes), tuple(outputs), _symbols(build), backward,
        tuple(dict.fromkeys([*program.notes, *notes, *build.extents.notes, *told]))[:_MOST_NOTES],
    )  # fmt: skip


def _symbols(build: Builder) -> tuple[tuple[str, int], ...]:
    sizes = (extent for one in build.tensors for extent in one.shape)
    used = {name for extent in sizes if isinstance(extent, Polynomial) for monomial, _ in extent.terms for name in monomial}
    return tuple((name, value) for name, value in build.extents.values.items() if name in used)
