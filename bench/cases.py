"""Public cases of people who had to choose: does the advice say what decides each, and does it stay silent about its neighbours?

Each file of `tests/samples/cases` holds what one person knew, restated, with its thread; `expected.yaml` beside them says what
an advisor must tell and which choices are acceptable. `further/` holds more of the same kinds, from threads that nobody looked
at while rules were written. `silent/` holds workloads near them, of each of which some words must not be told. Advice is asked
without probes and without what is attached here, so that every machine gives the same table.

Bounds, all of which must hold for exit 0: at least 95 % of the cases are right (every word told, the choice acceptable), at least
95 % of the neighbours are silent, and of the programs of cases and further ones that failed for memory at least 90 % are said
not to fit; of the further ones, which are no target, the share that is right is told. What is wrong and why is kept in
`known_wrong.yaml`; a test fails when that changes.

Run: `python -m bench.cases [--json] [--only NAME ...]`.
"""

import argparse
import json
import re
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from advisor import Question, advise
from core.advice import Recommendation
from core.errors import TandemError
from intake import read_file
from intake.syntax import parse
from services.pools import pools_for

CASES = Path(__file__).resolve().parent.parent / "tests" / "samples" / "cases"
FURTHER, SILENCES = CASES / "further", CASES / "silent"
RIGHT, SILENT, NO_ROOM = 0.95, 0.95, 0.9
MEMORY = "per_chip_memory"
NOTHING = "none"
KEYS = ("flags", "best", "runtimes", "never", "clear", "left")
_WORD = re.compile(r"(?P<flag>[a-z_0-9]+)(?: on (?P<accelerator>[a-z0-9-]+))?(?: in (?P<runtime>[a-z-]+))?")


@dataclass(frozen=True, slots=True)
class Word:
    """A flag word, of one accelerator or runtime where they are named; also what an answer told, empty meaning all.

    Args:
        flag: the word.
        accelerator: catalog key, or empty.
        runtime: id, or empty.
        effect: of what was told; empty in what is expected.
    """

    flag: str
    accelerator: str = ""
    runtime: str = ""
    effect: str = ""

    def covers(self, wanted: "Word") -> bool:
        """Whether this, told by an answer, is what is wanted."""
        same = self.flag == wanted.flag
        there = not wanted.accelerator or self.accelerator in ("", wanted.accelerator)
        return same and there and (not wanted.runtime or self.runtime in ("", wanted.runtime))

    def __str__(self) -> str:
        """As it is written in the files."""
        place = f" on {self.accelerator}" if self.accelerator else ""
        return f"{self.flag}{place}" + (f" in {self.runtime}" if self.runtime else "")


@dataclass(frozen=True, slots=True)
class Expected:
    """What an advisor must say of one case.

    Args:
        flags: words that must be told; of each group one.
        best: accelerators of an acceptable choice, `KEY` or `KEY=COUNT`, or `none`; empty accepts any.
        runtimes: of an acceptable choice; empty accepts any.
        never: accelerators or runtimes that must not be chosen; `none` where something can be.
        clear: (accelerator, runtime) against which nothing may be told but suggestions.
        silent: words that must not be told.
    """

    flags: tuple[tuple[Word, ...], ...] = ()
    best: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    clear: tuple[tuple[str, str], ...] = ()
    silent: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """One file, asked and judged.

    Args:
        name: of the file.
        wanted, found: words that must be told, and how many of them were.
        best: the choice, `KEY=COUNT` in a runtime, or `none`.
        faults: what is wrong, one phrase each; empty when it is right.
        seconds: that reading and advising took.
        no_room: words among them that say that it does not fit in a chip's memory, and how many of those were told.
    """

    name: str
    wanted: int
    found: int
    best: str
    faults: tuple[str, ...]
    seconds: float
    no_room: tuple[int, int] = (0, 0)

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def word_of(text: str) -> Word:
    """Return a word as the files write it: `recompile`, `recompile on tpu-v3`, `recompile on tpu-v3 in torch-xla`.

    Raises:
        ValueError: it is written otherwise.
    """
    found = _WORD.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"got {text!r}; expected FLAG, FLAG on ACCELERATOR or FLAG in RUNTIME; correct expected.yaml")
    return Word(found["flag"], found["accelerator"] or "", found["runtime"] or "")


def expectations(folder: Path = CASES) -> dict[str, Expected]:
    """Return what must be said of each case of a folder.

    Raises:
        ValueError: a key or word that is not known.
    """
    return {name: _expected(name, cast("Mapping[str, Any]", entry)) for name, entry in _plain(folder / "expected.yaml").items()}


def silences(folder: Path = SILENCES) -> dict[str, Expected]:
    """Return what must not be said of each workload near the cases; each of them can be run, so that a choice is there."""
    return {
        name: Expected(never=(NOTHING,), silent=tuple(word_of(text) for text in cast("list[str]", words)))
        for name, words in _plain(folder / "expected.yaml").items()
    }


def known_wrong(folder: Path = CASES) -> dict[str, str]:
    """Return the files that are known to be judged wrong, each with its reason."""
    return {name: str(reason) for name, reason in _plain(folder / "known_wrong.yaml").items()}


def _plain(path: Path) -> Mapping[str, object]:
    return parse(path.read_text(encoding="utf-8"))


def _expected(name: str, entry: Mapping[str, Any]) -> Expected:
    if strange := sorted(set(entry) - set(KEYS)):
        raise ValueError(f"got {', '.join(strange)} at {name}; expected {', '.join(KEYS)}; correct expected.yaml")
    clear = (_CLEAR.fullmatch(text) for text in entry.get("clear", ()))
    return Expected(
        flags=tuple(tuple(word_of(one) for one in text.split(" or ")) for text in entry.get("flags", ())),
        best=tuple(entry.get("best", ())), runtimes=tuple(entry.get("runtimes", ())), never=tuple(entry.get("never", ())),
        clear=tuple((found["accelerator"], found["runtime"]) for found in clear if found is not None),
    )


_CLEAR = re.compile(r"(?P<accelerator>[a-z0-9-]+) in (?P<runtime>[a-z-]+)")


def told_by(answer: Recommendation) -> tuple[Word, ...]:
    """Return every word that an answer tells, with where and to what effect."""
    verdicts = (Word(one.flag, one.accelerator, one.runtime, one.effect) for one in answer.verdicts)
    excluded = (Word(one.flag, one.accelerator, one.runtime, "exclude") for one in answer.excluded)
    return tuple(dict.fromkeys((*verdicts, *excluded)))


def choice_of(answer: Recommendation) -> tuple[str, int, str]:
    """Return accelerator, count and runtime of the choice; `none` without one."""
    if answer.best is None:
        return NOTHING, 0, ""
    pool = answer.best.candidate.pools[0]
    return pool.accelerator, pool.count, answer.best.candidate.runtime


def faults_of(expected: Expected, answer: Recommendation) -> tuple[str, ...]:
    """Return what is wrong with an answer, one phrase each."""
    told, (accelerator, count, runtime) = told_by(answer), choice_of(answer)
    faults = [f"not told: {' or '.join(map(str, group))}" for group in expected.flags if not _found(group, told)]
    faults += [f"told: {word}" for word in expected.silent if _found((word,), told)]
    if expected.best and not {accelerator, f"{accelerator}={count}"} & set(expected.best):
        faults.append(f"chosen: {accelerator}={count}, not {' or '.join(expected.best)}")
    if expected.runtimes and runtime not in expected.runtimes:
        faults.append(f"chosen: {runtime or NOTHING}, not {' or '.join(expected.runtimes)}")
    faults += [f"chosen: {wrong}" for wrong in expected.never if wrong in (accelerator, runtime)]
    for place, framework in expected.clear:
        against = sorted({one.flag for one in told if one.effect != "suggest" and one.covers(Word(one.flag, place, framework))})
        faults += [f"told against {framework} on {place}: {flag}" for flag in against]
    return tuple(faults)


def _found(group: Iterable[Word], told: Sequence[Word]) -> bool:
    return any(one.covers(wanted) for wanted in group for one in told)


def judge(path: Path, expected: Expected, today: str) -> Judged:
    """Ask for advice on one file and hold it against what is expected; what is refused is a fault.

    Args:
        path: the workload.
        expected: what must and must not be said.
        today: ISO date of the question.
    """
    began = time.perf_counter()
    memory = [group for group in expected.flags if any(word.flag == MEMORY for word in group)]
    try:
        workload = read_file(path).workload
        answer = advise(Question(workload, pools_for(workload, (), "all"), (), (), (), workload.objective, today))
    except TandemError as error:
        return Judged(path.stem, len(expected.flags), 0, NOTHING, (f"refused: {error}",), time.perf_counter() - began,
                      (len(memory), 0))  # fmt: skip
    told, (accelerator, count, runtime) = told_by(answer), choice_of(answer)
    found = sum(_found(group, told) for group in expected.flags)
    best = NOTHING if not runtime else f"{runtime} on {accelerator}={count}"
    return Judged(path.stem, len(expected.flags), found, best, faults_of(expected, answer), time.perf_counter() - began,
                  (len(memory), sum(_found(group, told) for group in memory)))  # fmt: skip


def judge_all(wanted: Mapping[str, Expected], folder: Path, today: str, only: Sequence[str] = ()) -> tuple[Judged, ...]:
    """Judge every file of a folder, or those that are named.

    Args:
        wanted: by name of the file.
        folder: of the files.
        today: ISO date of the questions.
        only: names, or beginnings of them; empty for all.
    """
    names = [name for name in sorted(wanted) if not only or name.startswith(tuple(only))]
    return tuple(judge(folder / f"{name}.yaml", wanted[name], today) for name in names)


def verdict(cases: Sequence[Judged], further: Sequence[Judged], neighbours: Sequence[Judged]) -> tuple[bool, str]:
    """Return whether the bounds hold, and the line that says so with its figures."""
    right, more, silent = (sum(one.right for one in group) for group in (cases, further, neighbours))
    words, found = sum(one.wanted for one in cases), sum(one.found for one in cases)
    lacking, said_so = (sum(one.no_room[at] for one in (*cases, *further)) for at in (0, 1))
    holds = bool(cases) and said_so >= NO_ROOM * lacking and right >= RIGHT * len(cases) and silent >= SILENT * len(neighbours)
    said = (
        f"{right} of {len(cases)} cases right ({_share(right, len(cases))}), {found} of {words} words told, "
        f"{more} of {len(further)} further ones right ({_share(more, len(further))}), "
        f"{silent} of {len(neighbours)} neighbours silent ({_share(silent, len(neighbours))}), "
        f"{said_so} of {lacking} that lacked memory said not to fit ({_share(said_so, lacking)})"
    )
    return holds, ("holds: " if holds else "falls short: ") + said


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none asked"


def _row(one: Judged, reasons: Mapping[str, str]) -> str:
    mark = "right" if one.right else "known wrong" if one.name in reasons else "WRONG"
    lines = [f"{one.name:34} {one.found:>2}/{one.wanted:<2}  {one.best:34.34} {mark}"]
    lines += textwrap.wrap("; ".join(one.faults), 126, initial_indent="    ", subsequent_indent="    ")
    if not one.right and one.name in reasons:
        lines += textwrap.wrap(f"because {reasons[one.name]}", 126, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def main() -> int:
    """Run from the command line; 0 when the bounds hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this case, or those that begin so; repeat")
    given = parser.parse_args()
    today, reasons = datetime.now(UTC).date().isoformat(), known_wrong()
    cases = judge_all(expectations(), CASES, today, given.only)
    further = judge_all(expectations(FURTHER), FURTHER, today, given.only)
    neighbours = judge_all(silences(), SILENCES, today, given.only)
    holds, said = verdict(cases, further, neighbours)
    if given.json:
        groups = {"cases": cases, "further": further, "neighbours": neighbours}
        rows = {name: [asdict(one) for one in group] for name, group in groups.items()}
        print(json.dumps({"schema_version": 1, **rows, "known_wrong": reasons, "verdict": said, "holds": holds}))
        return 0 if holds else 1
    print(f"{'case':34} words  {'choice':34} judged\n")
    for one in (*cases, *further, *neighbours):
        print(_row(one, reasons))
    print(f"\n{said}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
