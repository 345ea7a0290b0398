"""Which packages fit one environment, and into how many environments they go where they do not.

A small resolver over the releases of `catalog.pins`: newest first, with backtracking, numbers compared. What was not read is
let pass, so that a conflict is only told where every release that could be chosen is known to conflict. It answers for
packages that decide about accelerators; a package installer still has the last word on the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, facts
from advisor.rules.case import Case, canonical, not_older, version_numbers
from catalog.pins import Need, Release, releases

_DEPTH = 8
PYTHONS = ("3.14", "3.13", "3.12", "3.11", "3.10", "3.9", "3.8")
ON_TPU = {"jax": "jax[tpu]", "torch-xla": "torch-xla[tpu]", "tensorflow": "tensorflow-tpu"}
"""What is installed for a framework where the device is a TPU."""
OF_RUNTIME = {
    "jax": ("jax",), "keras-jax": ("keras", "jax"), "torch-xla": ("torch-xla",), "torch-tpu": ("torch-tpu",),
    "tf-graph": ("tensorflow",), "tf-xla": ("tensorflow",), "keras-tensorflow": ("keras", "tensorflow"), "mxnet": ("mxnet",),
}
ALIASES = {"vllm-tpu": "tpu-inference", "vllm-jax": "tpu-inference", "torchtpu": "torch-tpu", "gluoncv": "mxnet"}


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages that fit together.

    Args:
        holds: what was asked for, of it.
        python: a version of Python that all are built for.
        pins: (distribution, version), sorted; an empty version is a release that was not read.
    """

    holds: tuple[str, ...]
    python: str
    pins: tuple[tuple[str, str], ...]

    def version(self, name: str) -> str | None:
        """Return the version of a distribution, empty when its release was not read; None when it is not in it."""
        return dict(self.pins).get(name)

    @property
    def words(self) -> str:
        """Python and the pins in one line."""
        told = [(name, version) for name, version in self.pins if version or name in self.holds]
        pins = (f"{name} {version}" if version else f"another {name}" for name, version in told)
        return ", ".join((f"Python {self.python}", *pins))

    @property
    def settled(self) -> bool:
        """Whether every release of what was asked for is known."""
        return all(self.version(name) for name in self.holds)


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer to what fits together.

    Args:
        environments: one that holds everything, or several that hold it apart; none when something fits nothing.
        conflict: why one will not do, one phrase; empty when it does.
    """

    environments: tuple[Environment, ...]
    conflict: str = ""

    @property
    def fits(self) -> bool:
        """Whether one environment holds everything."""
        return not self.conflict


def resolve(wanted: Iterable[str], kind: str, stated: Mapping[str, str] | None = None) -> Resolution:
    """Return the environment that holds some packages, or the conflict and the environments to go to instead.

    Args:
        wanted: distributions, as users write them; those that no pins are known of are left out.
        kind: of the device that they are for; on `tpu` the builds for TPUs are meant.
        stated: versions that are given, by name; `python` among them.
    """
    names = tuple(dict.fromkeys(name for one in wanted if (name := known_name(one, kind)) in releases()))
    given = tuple(sorted((_given_name(name, kind), version) for name, version in (stated or {}).items()))
    return _resolved(names, tuple((name, version) for name, version in given if version_numbers(version) is not None))


def known_name(name: str, kind: str) -> str:
    """Return the name under which pins of a distribution are kept, for a kind of device."""
    plain = canonical(name)
    plain = ALIASES.get(plain, plain)
    return ON_TPU.get(plain, plain) if kind == "tpu" else plain


def _given_name(name: str, kind: str) -> str:
    return "python" if canonical(name) == "python" else known_name(name, kind)


@lru_cache(maxsize=512)
def _resolved(wanted: tuple[str, ...], stated: tuple[tuple[str, str], ...]) -> Resolution:
    whole = _environment(wanted, stated)
    if whole is not None:
        return Resolution((whole,))
    groups: list[tuple[str, ...]] = []
    for name in wanted:
        at = next((i for i, group in enumerate(groups) if _environment((*group, name), stated) is not None), None)
        if at is not None:
            groups[at] = (*groups[at], name)
        elif _environment((name,), stated) is not None:
            groups.append((name,))
        else:
            return Resolution((), _why_alone(name, stated))
    apart = tuple(found for group in groups if (found := _environment(group, stated)) is not None)
    return Resolution(apart, _why_together(wanted, stated))


def _environment(wanted: tuple[str, ...], stated: tuple[tuple[str, str], ...]) -> Environment | None:
    """Return the newest environment of packages on the newest Python, or None."""
    fixed = dict(stated)
    for python in PYTHONS:
        if "python" in fixed and not _same_line(python, fixed["python"]):
            continue
        chosen = _search(list(wanted), {}, (), python, fixed)
        if chosen is not None:
            return Environment(wanted, python, tuple(sorted((name, one.version) for name, one in chosen.items())))
    return None


def _search(
    open_names: list[str], chosen: dict[str, Release], needs: tuple[Need, ...], python: str, fixed: Mapping[str, str]
) -> dict[str, Release] | None:
    """Choose a release for the first open name and go on; None when none of its releases leads to an end."""
    if not open_names:
        return chosen
    name, rest = open_names[0], open_names[1:]
    if any(_plain(name) == _plain(one) for one in chosen):
        return _search(rest, chosen, needs, python, fixed)
    for release in _candidates(name, fixed):
        if not all(satisfies(python, need) for need in release.needs if need.name == "python"):
            continue
        more = (*needs, *(need for need in release.needs if need.name != "python"))
        picked = {**chosen, name: release}
        if all(_agrees(one, more, fixed) for one in picked.values()):
            follow = [need.name for need in release.needs if need.name in releases()]
            done = _search([*rest, *follow], picked, more, python, fixed)
            if done is not None:
                return done
    return None


def _candidates(name: str, fixed: Mapping[str, str]) -> tuple[Release, ...]:
    """Return the releases that may be chosen: those of a stated version, or those that were not read and may be it."""
    known, stated = releases()[name], _stated(name, fixed)
    if not stated:
        return known
    same = tuple(one for one in known if one.version and _same_line(one.version, stated))
    return same or tuple(one for one in known if not one.version and (not one.before or not not_older(stated, one.before)))


def _agrees(release: Release, needs: Iterable[Need], fixed: Mapping[str, str]) -> bool:
    """Whether a chosen release meets all needs of its name; of one that was not read, whether any version could."""
    asked = tuple(need for need in needs if need.name in (release.name, _plain(release.name)))
    if release.version:
        return all(satisfies(release.version, need) for need in asked)
    stated = _stated(release.name, fixed)
    bounds = (
        *((Need(release.name, "<", release.before),) if release.before else ()),
        *((Need(release.name, "==", f"{stated}.*"),) if stated else ()),
    )
    return any_version_meets((*asked, *bounds))


def any_version_meets(needs: Iterable[Need]) -> bool:
    """Return whether some version could meet all needs at once: whether the ranges that they allow overlap."""
    ranges = [_range(need) for need in needs]
    low = max(((start, not closed) for start, closed, _, _ in ranges if start is not None), default=None)
    high = min(((end, closed) for _, _, end, closed in ranges if end is not None), default=None)
    if low is None or high is None:
        return True
    start, end = low[0], high[0]
    return start < end or (start == end and not low[1] and high[1])


def _range(need: Need) -> tuple[tuple[int, ...] | None, bool, tuple[int, ...] | None, bool]:
    """Return the lowest version, whether it counts, the highest, and whether that counts."""
    line = version_numbers(need.version.removesuffix(".*")) or ()
    version = line + (0,) * (_DEPTH - len(line))
    if line and need.version.endswith(".*"):
        following = (*line[:-1], line[-1] + 1)
        return version, True, following + (0,) * (_DEPTH - len(following)), False
    start = version if need.relation in ("==", ">=", ">") else None
    end = version if need.relation in ("==", "<=", "<") else None
    return start, need.relation != ">", end, need.relation != "<"


def _stated(name: str, fixed: Mapping[str, str]) -> str:
    return fixed.get(name, fixed.get(_plain(name), ""))


def _plain(name: str) -> str:
    return name.split("[", maxsplit=1)[0]


def _same_line(version: str, stated: str) -> bool:
    """Whether a version begins with the numbers that are stated: 2.9.1 is of 2.9."""
    have, want = version_numbers(version), version_numbers(stated)
    return have is not None and want is not None and have[: len(want)] == want


def satisfies(version: str, need: Need) -> bool:
    """Return whether a version meets a need, numbers compared; an unknown version is let pass.

    Args:
        version: such as `0.0.50.1`; empty when it is not known.
        need: what is asked of it.
    """
    have = version_numbers(version) if version else None
    if have is None:
        return True
    if need.version.endswith(".*"):
        return _same_line(version, need.version.removesuffix(".*"))
    want = version_numbers(need.version) or ()
    length = max(len(have), len(want))
    left, right = have + (0,) * (length - len(have)), want + (0,) * (length - len(want))
    results = {"==": left == right, ">=": left >= right, "<=": left <= right, "<": left < right, ">": left > right}
    return results[need.relation]


def _why_alone(name: str, stated: tuple[tuple[str, str], ...]) -> str:
    """Return which stated version keeps one package from every environment."""
    if not _candidates(name, dict(stated)):
        last = releases()[name][0].version
        return f"there is no {name} {_stated(name, dict(stated))}: the last release is {last}"
    blamed = [(key, version) for key, version in stated if _environment((name,),
    tuple(s for s in stated if s[0] != key)) is not None]
    own = dict(stated).get(name, "")
    release = _candidates(name, dict(stated))[0]
    told = [f"{key} {version}" for key, version in blamed if key != name]
    needs = [str(need) for need in release.needs if need.name in {_plain(key) for key, _ in blamed}]
    called = f"{name} {own or release.version}".strip()
    return f"{called} needs {', '.join(needs) or 'other versions'}, and {' and '.join(told) or 'nothing else'} is stated"


def _why_together(wanted: tuple[str, ...], stated: tuple[tuple[str, str], ...]) -> str:
    """Return the pair that excludes each other and what they differ about."""
    for first, second in combinations(wanted, 2):
        if _environment((first, second), stated) is None:
            return f"{first} and {second} share no environment{_difference(first, second, stated)}"
    return f"{', '.join(wanted)} share no environment"


def _difference(first: str, second: str, stated: tuple[tuple[str, str], ...]) -> str:
    """Return the needs about which the newest releases of two packages differ."""
    left, right = (_all_needs(_candidates(name, dict(stated))[0]) for name in (first, second))
    for name in ("libtpu", "torch", "jax", "numpy", "python"):
        ours, theirs = ([f"{need.relation}{need.version}" for need in needs if need.name == name] for needs in (left, right))
        if ours and theirs and ours != theirs:
            return f": {name} {' '.join(ours)} against {' '.join(theirs)}"
    return ""


def _all_needs(release: Release) -> tuple[Need, ...]:
    """Return what a release needs, with what the exact releases that it names need in turn."""
    further = (
        need for one in release.needs if one.relation == "==" and one.name in releases()
        for other in releases()[one.name] if other.version and satisfies(other.version, one) for need in other.needs
    )
    return (*release.needs, *further)


@rule("R211", facts(
    "version_conflict", "exclude suggest", "one environment, or the pair that conflicts and two",
    "catalog/data/pins.csv: package metadata read "
    "2026-11-30 and 2026-12-01", PACKAGES, kinds=("tpu",), by_runtime=True,
))
def packages_must_fit_one_environment(case: Case) -> Finding | None:
    """What the code needs beside its framework must fit one environment with it, or goes into two."""
    needed = tuple(sorted(name for name in case.code.libraries if known_name(name, "tpu") in releases()))
    stated = {name: version for name, version in case.code.versions if name == "python" or known_name(name, "tpu") in releases()}
    if case.runtime.id not in OF_RUNTIME or not (needed or stated):
        return None
    found = resolve((*OF_RUNTIME[case.runtime.id], *needed), "tpu", stated)
    if found.fits:
        one = found.environments[0]
        if len(one.holds) < 2 or not one.settled or not needed:
            return None
        return Finding("suggest", f"these fit one environment: {one.words}")
    if not found.environments:
        return Finding("exclude", found.conflict)
    apart = "; ".join(f"{' and '.join(one.holds)} ({one.words})" for one in found.environments)
    return Finding("exclude", f"{found.conflict}: use {len(found.environments)} environments or containers: {apart}")
