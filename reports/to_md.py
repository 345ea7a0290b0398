"""A run as Markdown, for issues, wikis and reviews; charts are told in words, user text is escaped."""

import re

from core.errors import one_line
from core.run import Run
from reports.describe import describe
from reports.document import Cell, Section, Table, sections, side_table
from reports.theme import TIER_LOOKS
from reports.view import headline

MEDIA_TYPE = "text/markdown; charset=utf-8"
_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def render(run: Run) -> bytes:
    """Return the report as Markdown with tables (GitHub's dialect)."""
    head = headline(run)
    lines = [
        f"# {escape(head.title)}",
        "",
        escape(head.subtitle),
        "",
        f"**{escape(head.sentence)}**",
        "",
        escape(head.why),
        "",
        escape(head.rests_on),
        "",
    ]
    if head.sure:
        lines += [escape(head.sure), ""]
    if head.best:
        lines += [f"Step time of the best: **{escape(head.best.step_time.full)}**, {head.best.tier}.", ""]
    if head.best and head.best.price:
        lines += [f"Price: {escape(head.best.price)}.", ""]
    if run.recommendation and run.split is None:
        lines += ["## Side by side", "", *_table(side_table(run)), ""]
    for section in sections(run):
        lines += _section(run, section)
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def escape(text: str) -> str:
    """Return text as one line that Markdown shows as it is: no markup, no HTML, no mention."""
    joined = one_line(text, 2000)
    plain = "".join(_ENTITIES.get(character, character) for character in joined)
    escaped = _SPECIAL.sub(r"\\\1", plain).replace("&\\#64;", "&#64;")
    return re.sub(r"^([-+=]|\d+[.)](?=\s|$))", lambda start: start[0][:-1] + "\\" + start[0][-1], escaped)


def _section(run: Run, section: Section) -> list[str]:
    lines = [f"## {escape(section.title)}", ""]
    for line in section.lines:
        lines += [escape(line), ""]
    for chart in section.charts:
        subject = run if chart in ("roofline", "outcomes") else run.recommendation
        if subject is not None:
            lines += [f"*{escape(describe(chart, subject))}*", ""]
    for table in section.tables:
        if len(section.tables) > 1:
            lines += [f"### {escape(table.caption)}", ""]
        lines += [*_table(table), ""]
    for caption, code in section.codes:
        lines += [f"{escape(caption)}:", "", *_fenced(code), ""]
    return lines


def _table(table: Table) -> list[str]:
    numeric = [all(row[place].number for row in table.rows) for place in range(len(table.header))]
    lines = [
        f"| {' | '.join(escape(name) for name in table.header)} |",
        f"|{'|'.join('---:' if right else '---' for right in numeric)}|",
    ]
    return lines + [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows]


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.href:
        text = f"<{cell.href}>"
    if cell.sub:
        text += f" ({escape(cell.sub)})"
    if cell.tier and cell.tier != cell.text:
        text += f" {TIER_LOOKS[cell.tier].symbol} {cell.tier}"
    return f"**{text}**" if cell.strong else text


def _fenced(code: str) -> list[str]:
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *code.replace("\r", "").split("\n"), fence]
