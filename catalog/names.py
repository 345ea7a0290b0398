"""What people call an accelerator, turned into a key of the catalog and a count of chips.

The same thing has a dozen names: slices of Cloud TPU, names of SkyPilot, Ray, xpk, GKE, Hugging Face, JAX and NVIDIA's driver,
types of machine. Their number is not always chips: v2, v3, v4, v5p and TPU7x count cores, v5e and v6e chips. Inside Tandem a
count is always chips, and `Named.echo` says back what was understood. A name that fits several things is asked about, never
guessed, since the wrong guess costs money; so is a slice that does not exist.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from math import prod
from types import MappingProxyType

from catalog.hardware import accelerators
from catalog.machines import machine_named, machines, plain_name
from catalog.slices import Generation, generations, legal_counts, nearest_counts, slice_of, slice_with
from catalog.tables import rows_of, whole
from core.device import Slice
from core.errors import BadInput, NotFound

MOST_CHIPS = 10**6
_LONGEST, _LISTED = 160, 12
_PREFIXES = ("nvidia-", "amd-", "intel-", "google-", "aws-", "cloud-", "tesla-", "geforce-", "instinct-")
_TIMES = re.compile(r"(?P<count>\d{1,7})\s*(?:x\s*(?=[a-z])|x\s+)(?P<name>.+)", re.IGNORECASE)
_COUNTED = re.compile(r"(?P<name>.+?)(?:\s*+[:=]\s*+|\s++[x*]\s*+)(?P<count>\d{1,7})", re.IGNORECASE)
_ECHO = re.compile(r"(?P<name>.+?) = (?P<count>\d{1,7}) chips?(?: of [a-z0-9-]+)?(?:, .*)?")
_SLICE_TAIL = re.compile(r"(?:-(?:podslice|slice|device|pod))?(?:-(?P<size>\d{1,7}(?:x\d{1,5}){0,2}))?(?:-(?:head|pod))?")
_ENDING_NUMBER = re.compile(r"(?P<name>.+)-(?P<count>\d{1,4})")


@dataclass(frozen=True, slots=True)
class Named:
    """What a name was understood as.

    Args:
        said: the name as it was given, without a count beside it.
        key: of the catalog.
        chips: how many, when the name or a count beside it says so; always chips, never cores.
        shape: the slice, when its shape is known from the name or the count.
    """

    said: str
    key: str
    chips: int | None = None
    shape: Slice | None = None

    @property
    def echo(self) -> str:
        """What was understood, for the reader to check: `v5p-8 = 4 chips, 2x2x1, one host`; empty for a key without a count."""
        if self.chips is None:
            return "" if self.said == self.key else f"{self.said} = {self.key}"
        known = self.shape or slice_of(self.key, self.chips)
        chips = "1 chip" if self.chips == 1 else f"{self.chips} chips"
        words = chips if known is None else known.words
        if self.key not in generations() and self.said != self.key:
            words = words.replace(chips, f"{chips} of {self.key}", 1)
        notes = f" ({known.notes})" if known is not None and known.notes else ""
        return f"{self.said} = {words}{notes}"


def parse_name(text: str) -> Named:
    """Understand a name of an accelerator, with or without a count: `v5p-8`, `tpu-v6e=16`, `A100-80GB:8`, `8x h100-sxm`.

    Args:
        text: as typed; what `Named.echo` says is understood too.

    Raises:
        BadInput: the name fits several accelerators, or a slice that does not exist, or name and count contradict each other.
        NotFound: nothing has that name; the nearest is named.
    """
    given = " ".join(text[: _LONGEST + 1].split())
    if not given or len(text) > _LONGEST:
        raise NotFound(f"accelerator {text[:60]!r}", "a name such as tpu-v6e, v5p-8 or h100-sxm", "name one accelerator")
    echoed = _ECHO.fullmatch(given)
    if echoed is not None:
        return _counted(echoed["name"], int(echoed["count"]))
    alone = _lookup(given)
    if alone is not None:
        return alone
    for form in (_TIMES, _COUNTED):
        found = form.fullmatch(given)
        if found is not None:
            return _counted(found["name"].strip(), int(found["count"]))
    raise _unknown(given)


def slice_name(key: str, chips: int) -> str:
    """Return what Cloud TPU calls a slice: `v5p-8` for 4 chips of tpu-v5p; for others, the key and the count.

    Args:
        key: key of an accelerator.
        chips: of one slice.
    """
    version = generations().get(key)
    number = chips * (version.cores if version is not None and version.counts_cores else 1)
    known = slice_of(key, chips)
    if version is None or known is None or known.slices > 1 or number < version.smallest_number:
        return f"{key}={chips}"
    words = {"tpu-v5e": "v5litepod", "tpu-v7": "tpu7x"}.get(key, version.words[0])
    return f"{words}-{number}"


def names_of(key: str) -> tuple[str, ...]:
    """Return other names that mean just this accelerator, without counts, in the order of the files.

    Args:
        key: key of an accelerator.
    """
    version = generations().get(key)
    words = () if version is None else version.words
    listed = tuple(name for name, known in _names().items() if known == ((key,), None) and name != key)
    sold = tuple(machine.name for machine in machines().values() if machine.accelerator == key)
    return (*words, *listed, *sold)


def counted(named: Named, count: int) -> Named:
    """Return a name with a count given beside it; of a slice or a machine, that is its chips said again, or one.

    Args:
        named: what the name alone means.
        count: chips.

    Raises:
        BadInput: the count is out of bounds, or contradicts the name.
    """
    if not 1 <= count <= MOST_CHIPS:
        expected = f"KEY=N with N chips from 1 to {MOST_CHIPS:,}"
        raise BadInput(f"{named.said} with a count of {count}", expected, "correct the count")
    if named.chips is None:
        return Named(named.said, named.key, count)
    if count in (1, named.chips):
        return named
    expected = f"no count, since {named.echo}"
    raise BadInput(f"{named.said} with a count of {count}", expected, f"leave it out, or write {named.key}=N with N in chips")


def _counted(name: str, count: int) -> Named:
    found = _lookup(name)
    if found is None:
        raise _unknown(name)
    return counted(found, count)


def _lookup(given: str) -> Named | None:
    """Return what a name without a count means, or None when nothing has it.

    Raises:
        BadInput: several accelerators have it, or it names a slice that does not exist.
    """
    name = plain_name(given)
    for candidate in _without_prefixes(name):
        found = _known(given, candidate) or _of_tpu(given, candidate)
        if found is not None:
            return found
    split = _ENDING_NUMBER.fullmatch(name)
    if split is not None and int(split["count"]):
        for candidate in _without_prefixes(split["name"]):
            found = _known(given, candidate)
            if found is not None and found.chips is None:
                return Named(given, found.key, int(split["count"]))
    return None


def _known(given: str, name: str) -> Named | None:
    if name in accelerators():
        return Named(given if given.lower() != name else name, name)
    machine = machine_named(name)
    if machine is not None:
        return Named(given, machine.accelerator, machine.chips, slice_of(machine.accelerator, machine.chips))
    keys, chips = _names().get(name, ((), None))
    if len(keys) > 1:
        raise _ambiguous(given, keys)
    return Named(given, keys[0], chips) if keys else None


def _of_tpu(given: str, name: str) -> Named | None:
    bare = name.removeprefix("tpu").removeprefix("-")
    for word, version in _words():
        if bare == word or bare.startswith(f"{word}-"):
            tail = _SLICE_TAIL.fullmatch(bare.removeprefix(word))
            if tail is not None:
                return _slice_named(given, version, tail["size"])
    return None


def _slice_named(given: str, version: Generation, size: str | None) -> Named:
    if size is None:
        return Named(given, version.key)
    if "x" in size:
        topology = tuple(int(part) for part in size.split("x"))
        known = slice_with(version.key, topology)
        if known is None:
            raise _no_slice(given, version, prod(topology))
        return Named(given, version.key, known.chips, known)
    number = int(size)
    if version.counts_cores and (number < version.smallest_number or number % version.cores):
        chips = max(number, version.smallest_number) // version.cores
        raise BadInput(
            f"{given}, which counts {version.cores} cores a chip in Cloud TPU and chips elsewhere",
            f"a multiple of {version.cores} from {version.smallest_number} on, such as {slice_name(version.key, chips)}",
            f"write {version.key}=N with N in chips",
        )  # fmt: skip
    chips = number // version.cores if version.counts_cores else number
    known = slice_of(version.key, chips) if chips else None
    if known is None:
        raise _no_slice(given, version, chips)
    return Named(given, version.key, chips, known)


def _no_slice(given: str, version: Generation, chips: int) -> BadInput:
    counts = legal_counts(version.key, version.largest_chips)
    listed = ", ".join(str(count) for count in counts[:_LISTED]) + (f" and on to {counts[-1]}" if len(counts) > _LISTED else "")
    near = nearest_counts(version.key, chips) if 0 < chips <= MOST_CHIPS else counts[:1]
    remedy = "ask for " + " or ".join(slice_name(version.key, count) for count in near)
    return BadInput(f"{given}, a slice of {chips} chips that does not exist", f"a slice of {version.key}: {listed} chips", remedy)


def _ambiguous(given: str, keys: tuple[str, ...]) -> BadInput:
    known = accelerators()
    listed = ", ".join(f"{key} ({known[key].name})" for key in keys)
    return BadInput(f"{given!r}, which can mean {len(keys)} things", f"one of {listed}", "say which one is meant")


def _unknown(given: str) -> NotFound:
    name = plain_name(given)
    stems = dict.fromkeys((name, *_without_prefixes(name)))
    known = {**{key: key for key in accelerators()}, **{word: version.key for word, version in _words()}}
    known |= {machine: machine for machine in machines()}
    known |= {alias: "' or '".join(keys) for alias, (keys, _) in _names().items() if not alias.startswith(_PREFIXES)}
    near = next((match[0] for stem in stems if (match := get_close_matches(stem, known, n=1, cutoff=0.7))), None)
    remedy = f"did you mean '{known[near]}'?" if near else "list them with: ./tandem catalog"
    return NotFound(f"accelerator {given[:60]!r}", "a key of the catalog such as tpu-v6e, or a name such as v5p-8", remedy)


def _without_prefixes(name: str) -> tuple[str, ...]:
    """Return a name, and it without the makers and product lines that may stand before it."""
    found = [name]
    while (prefix := next((part for part in _PREFIXES if found[-1].startswith(part)), None)) is not None:
        found.append(found[-1].removeprefix(prefix))
    return tuple(found)


@cache
def _names() -> Mapping[str, tuple[tuple[str, ...], int | None]]:
    """Return the keys and the count that each listed name means."""
    rows = rows_of("names.csv")
    return MappingProxyType({row["name"]: (tuple(row["accelerators"].split()), whole(row["chips"])) for row in rows})


@cache
def _words() -> tuple[tuple[str, Generation], ...]:
    """Return every word for a TPU version, the longest first, so that `v5litepod` is not read as `v5`."""
    words = [(word, version) for version in generations().values() for word in version.words]
    return tuple(sorted(words, key=lambda item: -len(item[0])))
