"""Hard knowledge about what runs where, one function a rule, found by scanning this folder.

A rule looks at one subject and says what follows, or stays silent; what cannot be decided from the data is silence, never a
guess. There are three subjects: a `Case` (one workload in one runtime on one kind of chip; `@rule`), the workload alone
(`Code`; `@job_rule`, told once for all candidates) and a `SplitCase` (one workload over two unlike pools; `@split_rule`).

Some rules explain and never decide: padding, wave quantisation, rooflines, collectives and memory are computed by the cost
model, so that a penalty for them would count the same loss twice. Such a rule is registered with `explains=True`, says in
words where the loss comes from, with its size computed from the case, and may only warn or suggest. A rule that holds what
no model computes (a frozen package, a kernel that cannot move) may exclude or penalise.

Every rule says when it was last true (`as_of`) and when it must be looked at again (`expires`). One that is past that day is
told as such with what it says; it is never dropped. A file that cannot be imported, or a rule whose id, flag, effect or date
is not valid, stops the start with its name.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Generic, TypeVar

from advisor.rules.case import Case, Code
from advisor.rules.split_case import SplitCase
from core.advice import EFFECTS
from core.errors import TandemError

FLAGS = frozenset((
    "auth_proxy", "availability", "cache_leak", "chart_rows", "claim_conflict", "comm_overhead", "compile_in_timing",
    "compile_time", "cost_per_result", "custom_kernel_correctness", "custom_kernel_cuda_only", "custom_kernel_generation",
    "custom_kernel_missing", "db_lock", "dev_probe_fail", "dtype_overflow", "dtype_slow", "dtype_unsupported",
    "dynamic_shape", "eol", "experimental", "export_portability", "fork_unsafe", "framework_choice", "gather_scatter",
    "global_batch_semantics", "graph_growth", "host_bound", "host_memory", "host_sync", "hybrid_sync_dp", "input_bound",
    "input_location", "interconnect", "job_cancel", "load_peak", "mem_prealloc", "memory_leak", "misdetect", "none",
    "onchip_memory", "op_not_lowered", "op_slow", "overhead", "padding_waste", "pdf_font", "per_chip_memory",
    "precision_default", "quant_support", "recompile", "remat", "runtime_not_used", "serial_scan", "serving", "small_work",
    "sparse_not_paying", "spec_wrong", "stage_split", "startup_time", "state_lost", "thread_ctx", "tile_padding",
    "timing_invalid", "topology", "upload_limit", "version_conflict",
))
"""The flag words that verdicts and exclusions may carry."""
EXPLAINING = ("warn", "suggest")
"""What a rule may do that only explains a number of the cost model."""


class BrokenRuleError(TandemError):
    """A rule file cannot be used; the message names it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one subject.

    Args:
        effect: `exclude`, `penalise`, `warn` or `suggest`.
        reason: one sentence that a person can act on.
        factor: of the ranking score, in (0, 1]; below 1 only when the effect is `penalise`.
        least_chips: size of the smallest pool that the factor holds for; the reason names it where it is above 1.
    """

    effect: str
    reason: str
    factor: float = 1.0
    least_chips: int = 1

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS or not self.reason:
            raise ValueError(f"got effect {self.effect!r}; expected one of {', '.join(EFFECTS)} with a reason")
        if not 0 < self.factor <= 1 or (self.factor < 1) != (self.effect == "penalise"):
            raise ValueError(f"got factor {self.factor} with effect {self.effect!r}; expected below 1 with penalise, else 1")
        if self.least_chips < 1 or (self.least_chips > 1 and self.effect != "penalise"):
            raise ValueError(f"got {self.least_chips} chips at least with effect {self.effect!r}; expected 1, or penalise")


Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """What is written down of a rule beside its check.

    Args:
        flag: one of `FLAGS`.
        effects: what it may do, of `core.advice.EFFECTS`.
        magnitude: how much, in words; `computed from the case` where its check works it out.
        source: where the knowledge comes from.
        as_of: ISO date on which it was read.
        expires: ISO date from which it must be looked at again.
        explains: whether it only explains what the cost model computes.
        kinds: kinds of chips that it speaks of; empty for all.
        runtimes: ids of the runtimes that it speaks of; empty for all.
        by_runtime: whether it looks at the runtime although it speaks of all; others are asked once for a chip.
    """

    flag: str
    effects: tuple[str, ...]
    magnitude: str
    source: str
    as_of: str
    expires: str
    explains: bool = False
    kinds: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    by_runtime: bool = False


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject]):
    """One rule: its id, what is written down of it, and its check."""

    id: str
    facts: RuleFacts
    check: Callable[[Subject], Finding | None]

    @property
    def title(self) -> str:
        """First line of the rule's docstring."""
        return (self.check.__doc__ or "").strip().splitlines()[0]

    def speaks_of(self, runtime: str, kind: str) -> bool:
        """Return whether a runtime on a kind of chip is within what the rule is about."""
        return (not self.facts.kinds or kind in self.facts.kinds) and (not self.facts.runtimes or runtime in self.facts.runtimes)

    @property
    def of_chip(self) -> bool:
        """Whether it says the same of a chip in every runtime."""
        return not self.facts.runtimes and not self.facts.by_runtime

    def is_stale(self, today: str) -> bool:
        """Return whether it must be looked at again on an ISO date; never when no date is given."""
        return bool(today) and today[:10] >= self.facts.expires


_CASES: dict[str, Rule[Case]] = {}
_JOBS: dict[str, Rule[Code]] = {}
_SPLITS: dict[str, Rule[SplitCase]] = {}
_FAULTS = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, SyntaxError, TypeError, ValueError)


def rule(identity: str, facts: RuleFacts) -> Callable[[Callable[[Case], Finding | None]], Callable[[Case], Finding | None]]:
    """Register a function as a rule about one workload in one runtime on one kind of chip.

    Args:
        identity: unique id, `R001`.
        facts: what is written down of it.

    Raises:
        BrokenRuleError: the id is taken, something is missing, or the flag, an effect or a date is not valid.
    """
    return _register(identity, facts, _CASES)


def job_rule(identity: str, facts: RuleFacts) -> Callable[[Callable[[Code], Finding | None]], Callable[[Code], Finding | None]]:
    """Register a function as a rule about a workload wherever it runs; see `rule`.

    Args:
        identity: unique id.
        facts: what is written down of it.

    Raises:
        BrokenRuleError: as for `rule`, or it excludes or penalises, which needs a candidate.
    """
    if not set(facts.effects) <= set(EXPLAINING):
        raise BrokenRuleError(f"got rule {identity} with effects {facts.effects}; expected {EXPLAINING} without candidate")
    return _register(identity, facts, _JOBS)


def split_rule(
    identity: str, facts: RuleFacts
) -> Callable[[Callable[[SplitCase], Finding | None]], Callable[[SplitCase], Finding | None]]:
    """Register a function as a rule about a workload over two unlike pools; see `rule`.

    Args:
        identity: unique id.
        facts: what is written down of it.

    Raises:
        BrokenRuleError: as for `rule`.
    """
    return _register(identity, facts, _SPLITS)


def _register(
    identity: str, facts: RuleFacts, into: dict[str, Rule[Subject]]
) -> Callable[[Callable[[Subject], Finding | None]], Callable[[Subject], Finding | None]]:
    def register(check: Callable[[Subject], Finding | None]) -> Callable[[Subject], Finding | None]:
        for known in (_CASES, _JOBS, _SPLITS):
            if identity in known and known[identity].check.__module__ != check.__module__:
                raise BrokenRuleError(f"got rule {identity} twice; expected one; rename one of them")
        if fault := _fault_of(facts, check.__doc__):
            raise BrokenRuleError(f"got rule {identity} {fault}; see advisor/rules/__init__.py")
        into[identity] = Rule(identity, facts, check)
        return check

    return register


def _fault_of(facts: RuleFacts, docstring: str | None) -> str:
    """Return what is wrong with a rule, or empty."""
    if facts.flag not in FLAGS:
        return f"with flag {facts.flag!r}; expected a flag word"
    if not docstring or not facts.source or not facts.magnitude or not facts.effects:
        return "without docstring, source, magnitude or effects; expected all four"
    allowed = EXPLAINING if facts.explains else EFFECTS
    if not set(facts.effects) <= set(allowed):
        return f"with effects {', '.join(facts.effects)}; expected some of {', '.join(allowed)}"
    try:
        if date.fromisoformat(facts.as_of) >= date.fromisoformat(facts.expires):
            return f"read on {facts.as_of} that expires on {facts.expires}; expected a later day"
    except ValueError:
        return f"with dates {facts.as_of!r} and {facts.expires!r}; expected ISO dates"
    return ""


@cache
def all_rules() -> tuple[Rule[Case], ...]:
    """Import every file of this folder and return the rules about a workload in a runtime on a chip, by id.

    Raises:
        BrokenRuleError: a file cannot be imported; the message names it.
    """
    for module in pkgutil.iter_modules(__path__):
        name = f"{__name__}.{module.name}"
        try:
            importlib.import_module(name)
        except _FAULTS as error:
            fault = f"{type(error).__name__}: {error}"
            raise BrokenRuleError(f"got {fault} from rule file {name}; expected it to import; mend or remove it") from error
    return _by_id(_CASES.values())


def job_rules() -> tuple[Rule[Code], ...]:
    """Return the rules about a workload alone, by id; raises as `all_rules`."""
    all_rules()
    return _by_id(_JOBS.values())


def split_rules() -> tuple[Rule[SplitCase], ...]:
    """Return the rules about a workload over two unlike pools, by id; raises as `all_rules`."""
    all_rules()
    return _by_id(_SPLITS.values())


@cache
def rules_about(runtime: str, kind: str) -> tuple[Rule[Case], ...]:
    """Return those of `all_rules` that speak of a runtime on a kind of chip and differ between runtimes.

    Args:
        runtime: its id.
        kind: of the chip.
    """
    return tuple(one for one in all_rules() if not one.of_chip and one.speaks_of(runtime, kind))


@cache
def rules_of_chip(kind: str) -> tuple[Rule[Case], ...]:
    """Return those of `all_rules` that speak of a kind of chip and say the same in every runtime.

    Args:
        kind: of the chip.
    """
    return tuple(one for one in all_rules() if one.of_chip and one.speaks_of("", kind))


def _by_id(rules: Iterable[Rule[Subject]]) -> tuple[Rule[Subject], ...]:
    return tuple(sorted(rules, key=lambda one: one.id))
