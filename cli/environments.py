"""`./tandem runtimes resolve`: the environment that works for a framework on an accelerator, or why there is none."""

from dataclasses import replace
from typing import Any

import click

from cli.output import document, write
from cli.parts import json_flag
from core.errors import one_line
from services.environments import Answer, Way, resolve_environment

_SHOWN = 500


@click.command()
@click.argument("framework")
@click.argument("accelerator")
@click.option(
    "--with", "stated", multiple=True, metavar="LIB[==V]",
    help="Something that must be in it too, python==3.12 and cuda==12 among them; may be given more than once.",
)
@json_flag
def resolve(framework: str, accelerator: str, *, stated: tuple[str, ...], as_json: bool) -> int:
    """Say which environment works for FRAMEWORK on ACCELERATOR, or why none does and where to go instead.

    FRAMEWORK is jax, torch, tensorflow, keras, mxnet or a runtime's id; ACCELERATOR is cpu or any name of the catalog.
    """
    answer = resolve_environment(framework, accelerator, stated)
    if as_json:
        document(_shape(answer))
    else:
        _tell(answer)
    return 0 if answer.ways else 1


def _shape(answer: Answer) -> dict[str, Any]:
    return {
        "framework": answer.framework,
        "accelerator": answer.accelerator,
        "ways": [
            {
                "runtime": way.runtime, "status": way.status, "mind": way.mind, "python": way.python, "pins": dict(way.pins),
                "install": way.install, "tested": way.tested, "source": way.source, "source_date": way.source_date,
            }
            for way in answer.ways
        ],
        "refused": [
            {
                "runtime": one.runtime, "reason": one.reason, "apart": list(one.apart), "source": one.source,
                "source_date": one.source_date,
            }
            for one in answer.refused
        ],
        "way_out": [{"runtime": runtime, "status": status} for runtime, status in answer.way_out],
        "unknown": list(answer.unknown),
    }  # fmt: skip


def _tell(answer: Answer) -> None:
    write(f"{answer.framework} on {answer.accelerator}")
    for names, way in _together(answer.ways):
        _tell_way(names, way)
    for one in answer.refused:
        write("\n" + one_line(f"{one.runtime}: no; {one.reason} ({one.source}, {one.source_date})", _SHOWN))
        for environment in one.apart:
            write(f"  apart: {environment}")
    if answer.way_out:
        write("\nWay out: " + ", ".join(f"{runtime} ({status})" for runtime, status in answer.way_out))
    elif not answer.ways:
        write("\nWay out: take this framework to another accelerator, or leave out what conflicts")
    if answer.unknown:
        write(f"\nNo pins are kept of {', '.join(answer.unknown)}: the package installer has the last word on that")


def _together(ways: tuple[Way, ...]) -> tuple[tuple[str, Way], ...]:
    """Return ways of which all but the runtime is the same as one, under the names of their runtimes."""
    groups: dict[Way, list[str]] = {}
    for way in ways:
        groups.setdefault(replace(way, runtime=""), []).append(way.runtime)
    return tuple((", ".join(names), way) for way, names in groups.items())


def _tell_way(names: str, way: Way) -> None:
    pins = ", ".join(f"{name} {version}" if version else f"another {name}" for name, version in way.pins)
    write(f"\n{names}: {way.status}")
    write(f"  Python {way.python}: {pins}" + ("" if way.tested else "  (fits by package metadata; Tandem has not installed it)"))
    write(f"  {way.install}")
    if way.mind:
        write("  " + one_line(f"mind: {way.mind}", _SHOWN))
    write("  " + one_line(f"source: {way.source} ({way.source_date})", _SHOWN))
