"""The report as sections of text, tables and charts: written once, then told by HTML and Markdown in their own way.

Every text here is plain; escaping belongs to the format.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from core.advice import Estimate
from core.errors import one_line
from core.run import Run
from reports import facts, split_run_text, split_text, view
from reports.roof import device_of, points_of
from reports.split_command import command
from reports.view import LONGEST, CandidateRow, Figure

MOST_ROWS = 60
"""Candidates in the table; a catalog offers hundreds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Args:
        text: the main text, one line.
        sub: a second, quieter text; empty when there is none.
        href: an https address, or empty.
        tier: shown as a badge; empty when there is none.
        number: whether it is a number, which is aligned right.
        strong: whether it belongs to the chosen candidate.
        data: (name, value) pairs for machines.
    """

    text: str
    sub: str = ""
    href: str = ""
    tier: str = ""
    number: bool = False
    strong: bool = False
    data: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption, which names it to people who cannot see it."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the report.

    Args:
        id: its anchor.
        title: its heading.
        lines: paragraphs.
        charts: names of the charts that stand here.
        tables: empty ones are left out by `sections`.
        codes: (caption, text) to be shown as typed.
        appendix: whether it stands behind the report proper.
    """

    id: str
    title: str
    lines: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    codes: tuple[tuple[str, str], ...] = ()
    appendix: bool = False


def sections(run: Run) -> tuple[Section, ...]:
    """Return the parts of the report in order; the headline stands before them, and of advice the three sides."""
    answer = [
        _candidates(run),
        _time(run),
        _memory(run),
        _roofline(run),
        _reasons(run),
        _flips(run),
        _excluded(run),
        _unknown(run),
    ]
    parts = [
        *(answer if run.split is None else _split(run)),
        _workload(run),
        _actuals(run),
        _provenance(run),
        _reproduce(run),
        _measurements(run),
        _legend(),
    ]
    return tuple(part for part in parts if part is not None)


def side_rows(row: CandidateRow, amount: str) -> tuple[tuple[str, Figure], ...]:
    """Return the figures of one side as (name, figure), and after those that every side has what only some have."""
    memory = replace(row.memory, text=row.memory_text)
    return (
        ("step time", row.step_time),
        ("throughput", row.throughput),
        ("memory of one chip", memory),
        ("compile", row.compile),
        (f"cost, {amount}", row.cost),
        (f"energy, {amount}", row.energy),
        *row.further,
    )


def side_table(run: Run) -> Table:
    """Return this machine, the GPU pool and the TPU pool side by side as a table."""
    columns = view.side_by_side(run)
    amount = run.workload.amount
    figures = [dict(side_rows(column.row, amount)) if column.row else None for column in columns]
    names = dict.fromkeys(name for mine in figures if mine for name in mine)
    rows: list[tuple[Cell, ...]] = [
        (_text("candidate"), *(_text(column.row.label if column.row else column.note) for column in columns))
    ]
    rows += [
        (_text(name), *(_number(mine[name]) if mine and name in mine else _text(view.UNKNOWN) for mine in figures))
        for name in names
    ]
    prices = (column.row.price if column.row else "" for column in columns)
    rows.append((_text("price"), *(_text(price or view.UNKNOWN) for price in prices)))
    if any(column.row and column.row.targets for column in columns):
        rows.append((_text("targets"), *(_text(column.row.targets if column.row else view.UNKNOWN) for column in columns)))
    rows.append((_text("memory check"), *(_text(column.row.fits if column.row else view.UNKNOWN) for column in columns)))
    return Table("the best candidate of each side", ("", *(column.title for column in columns)), tuple(rows))


def _text(text: str, sub: str = "", href: str = "", strong: bool = False, data: tuple[tuple[str, str], ...] = ()) -> Cell:
    return Cell(one_line(text, LONGEST), one_line(sub, LONGEST), href=href, strong=strong, data=data)


def _number(figure: Figure, strong: bool = False, known: str = "") -> Cell:
    """Return a figure as a cell; its tier is left out when it is the `known` one of its row or table."""
    quantity = figure.quantity
    data = () if quantity is None else (("low", repr(quantity.low)), ("mid", repr(quantity.mid)), ("high", repr(quantity.high)))
    return Cell(figure.text, figure.band, tier="" if figure.tier == known else figure.tier, number=True, strong=strong, data=data)


def _plain(caption: str, header: tuple[str, ...], rows: Iterable[Iterable[Cell | str]]) -> tuple[Table, ...]:
    cells = tuple(tuple(cell if isinstance(cell, Cell) else _text(cell) for cell in row) for row in rows)
    return (Table(caption, header, cells),) if cells else ()


def _split(run: Run) -> list[Section]:
    """Return what was planned over several pools, and what came of it."""
    assert run.split is not None
    told = [("split", split_text.sections(run.split.split, run.workload))]
    if run.split.verified is not None:
        told.append(("split-run", split_run_text.verified_sections(run.split.verified)))
    found: list[Section] = []
    for anchor, every in told:
        found += [
            Section(f"{anchor}-{number}", part.title, part.text, tables=_plain(part.title, part.heads, part.rows))
            for number, part in enumerate(every, 1)
        ]
    return found


def _candidates(run: Run) -> Section:
    amount = run.workload.amount
    rows: list[tuple[Cell, ...]] = []
    every = view.candidate_rows(run)
    aimed = any(row.targets for row in every)
    for row in view.shortlisted_rows(run, MOST_ROWS):
        strong = row.mark == "✔"
        of = f"as {row.library} runs it" if row.library else ""
        name = _text(
            f"{row.mark} {row.label}".strip(),
            ", ".join(filter(None, (row.plan, of, f"rank {row.held_back} by rules" if row.held_back else ""))),
            strong=strong,
            data=(("candidate", row.label), ("rank", str(row.rank or ""))),
        )
        memory = Cell(
            row.memory.text,
            ", ".join(part for part in (row.capacity, row.fits if row.fits != "fits" else "") if part),
            number=True,
        )
        rows.append(
            (
                _text(str(row.rank or view.UNKNOWN)),
                name,
                _number(row.step_time, strong),
                Cell(row.throughput.text, number=True),
                memory,
                *(_number(figure, known=row.tier) for figure in (row.compile, row.cost, row.energy)),
                *([_text(row.targets or view.UNKNOWN)] if aimed else []),
            )
        )
    header = (
        "rank",
        "candidate",
        "step time",
        "throughput",
        "memory of one chip",
        "compile",
        f"cost, {amount}",
        f"energy, {amount}",
        *(["targets"] if aimed else []),
    )
    lines: tuple[str, ...] = (
        "✔ is chosen, ≈ cannot be told apart from it. Bands are meant to hold the truth 80 % of the time.",
        "A tier is named where it differs from that of the step time; — is not known. A factor of rules lowers the rank alone.",
    )
    if not rows:
        lines = ("No candidate is feasible." if run.recommendation else "There is no advice in this run.",)
    if len(rows) < len(every):
        lines += (f"{len(rows)} of {len(every)} candidates; the JSON and CSV reports hold them all.",)
    return Section("candidates", "Candidates", lines, ("candidates",), _plain("candidates, best first", header, rows))


def _leaders(run: Run) -> tuple[Estimate, ...]:
    """Return the estimates of the sides' best candidates, in rank order."""
    labels = {column.row.label for column in view.side_by_side(run) if column.row}
    return tuple(e for e in run.recommendation.ranked if e.candidate.label in labels) if run.recommendation else ()


def _time(run: Run) -> Section | None:
    tables = tuple(
        table
        for estimate in _leaders(run)
        for table in _plain(
            f"step time of {estimate.candidate.label}",
            ("part", "time", "share"),
            [
                (
                    _text(row.term, row.block),
                    _number(row.time, known=estimate.step_time_s.tier if estimate.step_time_s else ""),
                    Cell(row.share, number=True),
                )
                for row in view.share_rows(estimate)
            ],
        )
    )
    return Section("time", "Step time, part by part", (), ("breakdown",), tables) if tables else None


def _memory(run: Run) -> Section | None:
    tables = tuple(
        table
        for estimate in _leaders(run)
        for table in _plain(
            f"memory of one chip: {estimate.candidate.label}",
            ("part", "size"),
            [(name, Cell(size, number=True)) for name, size in view.memory_rows(estimate)],
        )
    )
    return Section("memory", "Memory, part by part", (), ("memory",), tables) if tables else None


def _roofline(run: Run) -> Section:
    device = device_of(run)
    drawn = device is not None and points_of(run, device)
    return Section(
        "roofline", "Roofline", () if drawn else ("No block was measured on an attached device.",), ("roofline",) if drawn else ()
    )


def _ruled(rows: tuple[facts.ReasonRow, ...], caption: str, dated: bool) -> tuple[Table, ...]:
    cells: list[tuple[Cell | str, ...]] = []
    for row in rows:
        source = _text(row.source or view.UNKNOWN, f"as of {row.as_of}" if dated and row.as_of else "", href=row.href)
        cells.append(
            (*((row.effect,) if dated else ()), row.applies_to, _text(row.reason, f"rule {row.rule}, {row.flag}"), source)
        )
    return _plain(caption, (*(("effect",) if dated else ()), "concerns", "reason", "source"), cells)


def _reasons(run: Run) -> Section:
    tables = _ruled(facts.reason_rows(run), "what the rules said", dated=True)
    return Section("reasons", "Reasons", () if tables else ("No rule had anything to say.",), (), tables)


def _flips(run: Run) -> Section:
    tables = _plain("changes that change the choice", ("what", "now", "changes at", "then choose"), facts.flip_rows(run))
    return Section(
        "flips", "What would change the choice", () if tables else ("No single change that was tried changes it.",), (), tables
    )


def _excluded(run: Run) -> Section:
    tables = _ruled(facts.excluded_rows(run), "what was excluded", dated=False)
    return Section("excluded", "Excluded, and why", () if tables else ("Nothing was excluded.",), (), tables)


def _unknown(run: Run) -> Section:
    gaps = _plain(
        "what is not known",
        ("what", "what would tell", "probing time"),
        [(r.what, r.remedy, r.cost) for r in facts.gap_rows(run)],
    )
    failures = facts.failure_rows(run)
    failed = _plain(
        "probes that failed",
        ("probe", "runtime", "device", "stage", "what happened", "exit code"),
        [(r.subject, r.runtime, r.device, r.stage, r.error, r.exit_code) for r in failures],
    )
    codes = tuple((f"last lines of {r.runtime} in {r.subject}", r.stderr_tail) for r in failures if r.stderr_tail.strip())
    lines = () if gaps or failed else ("Nothing is missing, and no probe failed.",)
    return Section("unknown", "What is not known", lines, (), gaps + failed, codes)


def _workload(run: Run) -> Section:
    lines = tuple(f"Assumed: {phrase}." for phrase in run.workload.assumptions) or ("Nothing was assumed.",)
    header = ("block", "repeats", "parameters", "FLOPs forward", "FLOPs backward")
    blocks = [
        (
            _text(r.name, f"{r.kind}: {r.sizes}"),
            *(Cell(text, number=True) for text in (r.repeats, r.parameters, r.flop_forward, r.flop_backward)),
        )
        for r in facts.block_rows(run)
    ]
    tables = _plain("the workload", ("fact", "value"), facts.workload_facts(run)) + _plain(
        "its blocks, each repeat", header, blocks
    )
    return Section("workload", "The workload", lines, (), tables)


def _actuals(run: Run) -> Section | None:
    rows = [
        (r.label, Cell(r.actual, number=True), r.predicted, Cell(r.error, number=True), r.inside_band, r.note)
        for r in facts.actual_rows(run)
    ]
    header = ("candidate", "really", "predicted", "error", "inside the band", "note")
    return (
        Section("actuals", "What really happened", (), (), _plain("predicted and real step times", header, rows))
        if rows
        else None
    )


def _provenance(run: Run) -> Section:
    tables = (
        _plain("this run", ("fact", "value"), facts.run_facts(run))
        + _plain("attached devices", ("device", "what it is"), facts.device_facts(run))
        + _plain("versions", ("name", "version"), run.versions)
    )
    return Section("provenance", "Run, devices and versions", (), (), tables)


def _reproduce(run: Run) -> Section:
    asked = run.options.split
    again = facts.command(run) if asked is None else command("workload.json", asked, run.options.objective)
    codes = (("save as workload.json", facts.document_text(run)), ("then run", again))
    return Section("reproduce", "How to reproduce", ("The same question, asked again from the command line:",), (), (), codes)


def _measurements(run: Run) -> Section | None:
    if run.split is not None and not run.outcomes:
        return None
    rows = [
        (
            r.subject,
            r.runtime,
            r.device,
            Cell(r.median, number=True),
            Cell(r.iqr, number=True),
            Cell(r.minimum, number=True),
            Cell(str(r.n), number=True),
            r.method,
            Cell(r.compile, number=True),
            _text("; ".join(r.warnings) or view.UNKNOWN, "" if r.trusted else "not trusted"),
        )
        for r in facts.measurement_rows(run)
    ]
    header = ("subject", "runtime", "device", "median", "IQR", "minimum", "n", "method", "compile", "warnings")
    lines = (
        ("Medians, interquartile ranges and minima of raw samples, which the JSON report holds in full.",)
        if rows
        else ("Nothing was measured.",)
    )
    return Section(
        "measurements",
        "Appendix: every measurement",
        lines,
        ("outcomes",),
        _plain("every measurement", header, rows),
        appendix=True,
    )


def _legend() -> Section:
    rows = [(Cell(word, tier=word), meaning) for _, word, meaning in facts.tier_legend()]
    return Section(
        "tiers",
        "Appendix: where numbers come from",
        (),
        (),
        _plain("tiers, best first", ("tier", "meaning"), rows),
        appendix=True,
    )
