"""Hard knowledge about what runs where, one function a rule, found by scanning this folder.

A rule looks at one `Case` and says what follows, or stays silent; what cannot be decided from the data is silence, never a
guess. A file that cannot be imported, or a rule whose id, flag or effect is not valid, stops the start with its name.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from advisor.rules.case import Case
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


class BrokenRuleError(TandemError):
    """A rule file cannot be used; the message names it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one case.

    Args:
        effect: `exclude`, `penalise`, `warn` or `suggest`.
        reason: one sentence that a person can act on.
        factor: of the ranking score, in (0, 1]; below 1 only when the effect is `penalise`.
    """

    effect: str
    reason: str
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS or not self.reason:
            raise ValueError(f"got effect {self.effect!r}; expected one of {', '.join(EFFECTS)} with a reason")
        if not 0 < self.factor <= 1 or (self.factor < 1) != (self.effect == "penalise"):
            raise ValueError(f"got factor {self.factor} with effect {self.effect!r}; expected below 1 with penalise, else 1")


Check = Callable[[Case], Finding | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, its flag word, where it comes from, when that was true, and its check."""

    id: str
    flag: str
    source: str
    as_of: str
    check: Check

    @property
    def title(self) -> str:
        """First line of the rule's docstring."""
        return (self.check.__doc__ or "").strip().splitlines()[0]


_FOUND: dict[str, Rule] = {}
_FAULTS = (ArithmeticError, AttributeError, ImportError, LookupError, NameError, SyntaxError, TypeError, ValueError)


def rule(identity: str, *, flag: str, source: str, as_of: str) -> Callable[[Check], Check]:
    """Register a function as a rule.

    Args:
        identity: unique id, `R001`.
        flag: one of `FLAGS`.
        source: where the knowledge comes from.
        as_of: ISO date on which it was read.

    Raises:
        BrokenRuleError: the id is taken, the flag is unknown, or the function has no docstring.
    """

    def register(check: Check) -> Check:
        if identity in _FOUND and _FOUND[identity].check.__module__ != check.__module__:
            raise BrokenRuleError(f"got rule {identity} twice; expected one; rename one of them")
        if flag not in FLAGS:
            raise BrokenRuleError(f"got flag {flag!r} of rule {identity}; expected a flag word; see advisor/rules/__init__.py")
        if not check.__doc__ or not source or not as_of:
            raise BrokenRuleError(f"got rule {identity} without docstring, source or date; expected all three; add them")
        _FOUND[identity] = Rule(identity, flag, source, as_of, check)
        return check

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """Import every file of this folder and return the rules, by id.

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
    return tuple(_FOUND[identity] for identity in sorted(_FOUND))
