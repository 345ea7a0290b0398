"""A split as rows of text: the one place that turns its words into what people read.

Page, command line, Markdown and HTML show these rows, so a number reads the same everywhere; `sections` hands them out as plain
tables for formats that want no more. Nothing is computed beyond choosing and writing, and nothing is escaped: each format does
that itself.
"""

from dataclasses import dataclass

from core import format as write
from core.device import TOO_FAST, Link, Pool
from core.errors import one_line
from core.quantity import TIERS, Quantity, worst_tier
from core.split import BreakEven, Curve, Move, Share, Single, Split, other_side, pool_words
from core.workload import Workload
from reports.facts import ReasonRow, https_only
from reports.split_prices import price_note
from reports.theme import TIER_LOOKS
from reports.view import UNKNOWN, Figure, figure

MODE_WORDS: dict[str, tuple[str, str]] = {
    "data": ("Every step's batch", "each pool takes a part of every batch, and gradients are exchanged in every step"),
    "local": ("Copies that meet", "each pool trains a copy on its part, and the copies meet every so many steps"),
    "pipeline": ("Layers in a row", "each pool has some of the layers, and activations cross between them"),
    "operators": ("Work by kind", "one pool has the embeddings and irregular parts, the other the dense layers"),
    "stages": ("Stages of a workflow", "each stage runs on the pool that suits it"),
    "rl": ("Rollouts and learner", "one pool generates, the other learns, and weights are pushed across"),
    "serving": ("Requests", "each request goes to the pool that serves it at the least cost"),
    "portfolio": ("Whole workloads", "each workload has a pool and a time"),
}
"""Name and meaning of each mode, for people."""
VERDICT_WORDS = {"hybrid": "Together", "single": "One pool"}
NO_PLAN = "No plan"
OBJECTIVE_WORDS = {"time": "time", "cost": "cost", "energy": "energy"}
WHOLE_JOBS = ("stages", "portfolio")
"""Modes whose seconds are of the job and not of a step."""
FLEETS = ("serving",)
"""Modes whose cost is of an hour."""
TIMES = {"stages": "Job time", "portfolio": "Job time", "serving": "Answer, mean", "rl": "Iteration time"}
"""What the seconds of a mode are of, where they are not of a step."""
COURSES = {"local": "One round of steps", "rl": "One iteration", "serving": "One request"}
"""What the timeline of a mode is of, where it is no step."""
SWAPS = ("data", "local")
"""Modes in which two pools send each other the same at once; a row of moves tells both ways together."""
LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Headline:
    """What is said of a split first.

    Args:
        verdict: two words at most.
        good: whether the split is recommended.
        saving: `saves 36 % of time`, `loses by 156 % of time`, or why it is not known.
        sentence, why, rests_on: one sentence each.
    """

    verdict: str
    good: bool
    saving: str
    sentence: str
    why: str
    rests_on: str


@dataclass(frozen=True, slots=True)
class ShareRow:
    """What one pool does, in words; `fraction` and `amount` say how much."""

    label: str
    runtime: str
    fraction: str
    amount: str
    busy: str
    wait: str
    memory: str
    price: str
    where: str
    detail: str


@dataclass(frozen=True, slots=True)
class MoveRow:
    """What crosses between two pools, in words; `hidden` is what nobody waits for."""

    what: str
    way: str
    size: str
    seconds: str
    exposed: str
    hidden: str


@dataclass(frozen=True, slots=True)
class SingleRow:
    """The split, or one pool alone.

    Args:
        mark: `✔` for what is recommended, else nothing.
        fits: `yes`, `no`, or a dash for the split.
    """

    mark: str
    label: str
    seconds: Figure
    cost: Figure
    energy: Figure
    fits: str
    missing: str
    tier: str


@dataclass(frozen=True, slots=True)
class Section:
    """One table for formats that want no more; `heads` is empty where there is only `text`."""

    title: str
    text: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def side_label(runtime: str, pool: Pool) -> str:
    """Return a pool with the framework on it, where there is one: `jax on 8 x tpu-v6e`."""
    return f"{runtime} on {pool_words(pool)}" if runtime else pool_words(pool)


def percent(fraction: float) -> str:
    """Return a fraction as a percentage; one that would round to nothing or to all keeps a digit."""
    value = 100 * fraction
    return f"{value:.1f} %" if 0 < abs(value) < 1 or 99 < value < 100 else f"{value:.0f} %"


def mode_name(mode: str) -> str:
    """Return the name of a mode for people; of one that is not known, itself."""
    return MODE_WORDS[mode][0] if mode in MODE_WORDS else mode


def mode_meaning(mode: str) -> str:
    """Return what a mode does, one phrase; of none, that all are tried."""
    return MODE_WORDS[mode][1] if mode in MODE_WORDS else "every way that this workload allows is planned, and the best one shown"


def time_title(mode: str) -> str:
    """Return what the seconds of a mode are of."""
    return TIMES.get(mode, "Step time")


def course_title(mode: str) -> str:
    """Return what the timeline of a mode is of: `One step`, `One round`, `The job`."""
    return "The job" if mode in WHOLE_JOBS else COURSES.get(mode, "One step")


def amount_of(mode: str, workload: Workload | None) -> str:
    """Return what cost and energy are of: the job, 1,000 steps, or an hour of a fleet."""
    return "an hour" if mode in FLEETS or workload is None else workload.amount


def link_text(link: Link | None) -> str:
    """Return a link as people name it: `25.0 Gbit/s, 1.00 ms`; a dash when there is none."""
    if link is None:
        return UNKNOWN
    rate = write.count(8 * link.bytes_per_s, "bit/s") if link.bytes_per_s < TOO_FAST else "too fast to tell"
    return f"{rate}, {write.seconds(link.latency_s)}"


def saving_text(split: Split) -> str:
    """Return by how much the split wins or loses against the best single pool, in words."""
    what = OBJECTIVE_WORDS.get(split.objective, split.objective)
    if split.saving is None:
        return "no single pool to compare with" if split.best_single is None else f"the saving of {what} is not known"
    if split.saving < 0:
        return f"hybrid loses by {percent(-split.saving)} of {what}"
    beside = other_side(split.objective, split.seconds, split.cost_usd, split.best_single)
    beside = f", {beside}" if beside else ""
    least = f", under the {percent(split.least_saving)} that two stacks have to bring"
    return f"saves {percent(split.saving)} of {what}{beside}" + (least if split.saving < split.least_saving else "")



def headline(split: Split) -> Headline:
    """Return what is said of a split first."""
    return Headline(
        VERDICT_WORDS.get(split.verdict, split.verdict) if split.seconds or split.best_single else NO_PLAN,
        split.verdict == "hybrid",
        saving_text(split),
        one_line(split.sentence, LONGEST),
        one_line(split.why, LONGEST),
        rests_on(split),
    )


def rests_on(split: Split) -> str:
    """Return what the numbers rest on: tiers of the split and of the pools alone; the worst one is explained."""
    known = [one.seconds for one in split.singles if one.seconds is not None]
    known = [*known, split.seconds] if split.seconds is not None else known
    if not known:
        return "nothing: no number is known"
    worst = worst_tier(tuple(one.tier for one in known))
    best = min((one.tier for one in known), key=TIERS.index)
    said = f"{worst} figures" if worst == best else f"{best} to {worst} figures"
    return f"{said}: {TIER_LOOKS[worst].meaning}"


def evidence_rows(split: Split) -> tuple[tuple[str, str], ...]:
    """Return what the numbers rest on in full, as (whose, phrase); each phrase once."""
    whose = (("the pools together", split.seconds), *((side_label(one.runtime, one.pool), one.seconds) for one in split.singles))
    told: dict[str, str] = {}
    for name, quantity in whose:
        for phrase in quantity.evidence if quantity is not None else ():
            told.setdefault(one_line(phrase, LONGEST), name)
    return tuple((name, phrase) for phrase, name in told.items())


def share_rows(split: Split) -> tuple[ShareRow, ...]:
    """Return what each pool does, in the order of the split."""
    return tuple(_share_row(share) for share in split.shares)


def move_rows(split: Split) -> tuple[MoveRow, ...]:
    """Return what crosses between pools, what is waited for longest first."""
    moved = [move for move in split.moves if move.size_bytes > 0]
    swapped = split.mode in SWAPS and len(moved) == 1
    return tuple(_move_row(move, both_ways=swapped) for move in sorted(moved, key=lambda move: -move.exposed_s))


def single_rows(split: Split) -> tuple[SingleRow, ...]:
    """Return the split and every pool alone, the split first; what is recommended is marked."""
    hybrid = split.verdict == "hybrid"
    names = " + ".join(pool_words(share.pool) for share in split.shares if share.fraction > 0) or "the pools together"
    first = SingleRow(
        "✔" if hybrid else "",
        f"together: {names}",
        figure(split.seconds),
        figure(split.cost_usd, write.usd),
        figure(split.energy_j, write.energy),
        UNKNOWN,
        "; ".join(split.missing),
        split.seconds.tier if split.seconds else "",
    )
    return (first, *(_single_row(one, not hybrid and one == split.best_single) for one in split.singles))


def objective_figure(one: Single, objective: str) -> Figure:
    """Return what an objective compares of a pool alone, as it is shown."""
    if objective == "cost":
        return figure(one.cost_usd, write.usd)
    return figure(one.energy_j, write.energy) if objective == "energy" else figure(one.seconds)


def break_even_rows(split: Split) -> tuple[tuple[str, str, str, str], ...]:
    """Return where the choice turns, as (what, now, turns at, one sentence)."""
    return tuple((one.what, _amount(one, one.now), _amount(one, one.at), one_line(one.words)) for one in split.break_even)


def other_rows(split: Split) -> tuple[tuple[str, str, str], ...]:
    """Return other ways of dividing that were planned, as (name, seconds, one phrase)."""
    return tuple((mode_name(mode), write.seconds(seconds), one_line(said)) for mode, seconds, said in split.others)


def reason_rows(split: Split) -> tuple[ReasonRow, ...]:
    """Return what the rules said: what excludes first, then penalties, warnings and suggestions."""
    order = ("exclude", "penalise", "warn", "suggest")
    ordered = sorted(split.verdicts, key=lambda v: order.index(v.effect) if v.effect in order else len(order))
    return tuple(
        ReasonRow(
            v.effect,
            " on ".join(filter(None, (v.runtime, v.accelerator))) or "this split",
            v.reason,
            v.source,
            https_only(v.source),
            v.as_of,
            v.flag,
            v.rule,
        )
        for v in ordered
    )


def term_rows(split: Split) -> tuple[tuple[str, str, str], ...]:
    """Return where the step of the split goes, as (term, seconds, share); what takes no time is left out."""
    whole = sum(seconds for _, seconds in split.terms)
    return tuple((name, write.seconds(value), percent(value / whole)) for name, value in split.terms if value > 0)


def curve_x(curve: Curve, x: float) -> str:
    """Return a place on a curve's axis in words: `44 %`, `25.0 Gbit/s`."""
    return percent(x) if curve.what == "share" else write.count(8 * x, "bit/s")


def sections(split: Split, workload: Workload | None = None) -> tuple[Section, ...]:
    """Return a split as plain tables, what matters most first; empty ones are left out.

    Args:
        split: the answer.
        workload: tells whether cost is of the whole job or of 1,000 steps.
    """
    said = headline(split)
    amount = f", {amount_of(split.mode, workload)}" if workload is not None or split.mode in FLEETS else ""
    time = time_title(split.mode)
    shares = tuple(
        (s.label, s.runtime, s.fraction, s.amount, s.busy, s.wait, s.memory, s.detail or UNKNOWN) for s in share_rows(split)
    )
    moves = tuple((m.what, m.way, m.size, m.seconds, m.exposed) for m in move_rows(split))
    singles = tuple((s.mark, s.label, s.seconds.full, s.cost.full, s.energy.full, s.fits) for s in single_rows(split))
    reasons = tuple((r.effect, r.applies_to, r.reason, r.source, r.as_of, r.rule) for r in reason_rows(split))
    first = (f"{said.verdict}: {said.saving}.", f"Why: {said.why}", f"Rests on: {said.rests_on}")
    every = (
        Section(said.sentence, (*first, f"Link: {link_text(split.link)}", f"How: {mode_name(split.mode)}")),
        Section("Who does what", heads=("Pool", "Framework", "Share", "Amount", "Busy", "Waits", "A chip", "How"), rows=shares),
        Section("What moves", heads=("What", "Way", "Size", "Takes", "Waited for"), rows=moves),
        Section(
            "Beside one pool alone", tuple(filter(None, (price_note(split),))),
            ("", "Pools", time, f"Cost{amount}", f"Energy{amount}", "Fits"), singles,
        ),
        Section("Where the time goes", heads=("Part", "Time", "Share"), rows=term_rows(split)),
        Section("Where the choice turns", heads=("If", "Now", "Turns at", "So"), rows=break_even_rows(split)),
        Section("Other ways of dividing", heads=("Way", "Time", "Why not"), rows=other_rows(split)),
        Section("Rules", heads=("Effect", "Of", "Reason", "Source", "As of", "Rule"), rows=reasons),
        Section("What the numbers rest on", heads=("Whose", "What"), rows=evidence_rows(split)),
        Section("Not known, or taken as usual", tuple(one_line(text) for text in split.missing)),
    )
    return tuple(section for section in every if section.text or section.rows)


def _share_row(share: Share) -> ShareRow:
    pool = share.pool
    return ShareRow(
        pool_words(pool),
        share.runtime or "any framework",
        percent(share.fraction),
        f"{_number(share.amount)} {share.unit.removesuffix('s') if share.amount == 1 else share.unit}".strip(),
        write.seconds(share.busy_s),
        write.seconds(share.wait_s),
        write.memory(share.memory_bytes),
        UNKNOWN if pool.price_usd_per_h is None else f"{write.usd(pool.price_usd_per_h)} an hour",
        pool.where,
        one_line(share.detail),
    )


def _move_row(move: Move, *, both_ways: bool) -> MoveRow:
    hidden = max(move.seconds - move.exposed_s, 0.0)
    return MoveRow(
        one_line(move.what, 120),
        f"{move.source} {'⇄' if both_ways else '→'} {move.target}",
        write.memory(move.size_bytes),
        write.seconds(move.seconds),
        write.seconds(move.exposed_s),
        write.percent(hidden / move.seconds if move.seconds > 0 else None),
    )


def _single_row(one: Single, chosen: bool) -> SingleRow:
    seconds: Quantity | None = one.seconds
    return SingleRow(
        "✔" if chosen else "",
        side_label(one.runtime, one.pool),
        figure(seconds),
        figure(one.cost_usd, write.usd),
        figure(one.energy_j, write.energy),
        UNKNOWN if one.feasible is None else "yes" if one.feasible else "no",
        one_line(one.missing),
        seconds.tier if seconds else "",
    )


def _number(amount: float) -> str:
    return write.count(amount) if amount != int(amount) else f"{amount:,.0f}"


def _amount(one: BreakEven, value: float | None) -> str:
    """Return a number in its unit, as people write it: links in bits, prices in dollars."""
    if value is None:
        return UNKNOWN
    if one.unit in ("B/s", "bytes/s"):
        return write.count(8 * value, "bit/s")
    if one.unit == "USD/h":
        return f"{write.usd(value)} an hour"
    number = f"{value:,.0f}" if value == int(value) else write.three_digits(value)
    return f"{number} {one.unit}".strip()
