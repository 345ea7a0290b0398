"""Which environment works for a framework on an accelerator, or why there is none and where to go instead.

Three sources are put together: whether the framework runs there at all (the catalog's support table), which releases fit
together (the small resolver over package metadata), and the requirements files of this repository, which were resolved whole.
A package installer still has the last word on what is not kept here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import catalog
from advisor.rules.environments import Environment, Resolution, known_name, resolve
from catalog import EnvironmentSpec, Support
from catalog.pins import releases
from catalog.runtimes import STATUSES, family_of
from core.errors import BadInput, NotFound
from core.probe import RUNTIME_IDS
from probes.environment import ROOT

ASKED_AS = {
    "pytorch": "torch", "tf": "tensorflow", "torch_xla": "torch-xla", "pytorch-xla": "torch-xla", "torchtpu": "torch-tpu",
    "torch_tpu": "torch-tpu", "keras3": "keras", "gluon": "mxnet", "flax": "jax",
}
"""Other words for frameworks and runtimes."""
PACKAGES = {
    "jax": ("jax",), "torch-eager": ("torch",), "torch-compile": ("torch",), "torch-xla": ("torch-xla",),
    "torch-tpu": ("torch-tpu",), "tf-graph": ("tensorflow",), "tf-xla": ("tensorflow",), "keras-jax": ("keras", "jax"),
    "keras-tensorflow": ("keras", "tensorflow"), "keras-torch": ("keras", "torch"), "mxnet": ("mxnet",),
}
"""What is asked of the resolver for each runtime."""
SUCCESSORS = {
    "mxnet": ("torch-eager", "torch-compile", "torch-tpu", "jax"), "torch": ("torch-tpu", "torch-compile", "torch-eager", "jax"),
    "tensorflow": ("keras-jax", "jax"), "keras": ("keras-jax", "keras-torch", "keras-tensorflow", "jax"),
    "jax": ("keras-jax", "torch-tpu", "torch-compile"),
}
"""Where code of a framework goes when it has to move, nearest first."""
CUDA = {"jax-cuda13": 13, "jax-cuda12": 12, "torch-cuda": 13, "tensorflow-cuda": 12}
"""Major version of CUDA that each environment brings along; read from its requirements file."""
BEFORE_CUDA_13 = ("v100", "p100")
"""Generations that CUDA 13 compiles nothing for. Source: rule R027."""
NOT_PACKAGES = ("python", "cuda")
"""What may be stated that no index has."""
GOOD = ("first-class", "supported")
_STATED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,60})(?:==(?P<version>\d[0-9A-Za-z.+]{0,30}))?")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[0-9A-Za-z.+]+)")


@dataclass(frozen=True, slots=True)
class Way:
    """A runtime that works on the accelerator.

    Args:
        runtime: its id.
        status: first-class, supported, community or deprecated.
        mind: what to know before relying on it.
        python: version that the pins are built for, or the range of the requirements file.
        pins: (distribution, version), sorted; an empty version is a release that was not read.
        install: command that makes the environment.
        tested: whether the pins are those of a requirements file of this repository.
        source, source_date: where support is told.
    """

    runtime: str
    status: str
    mind: str
    python: str
    pins: tuple[tuple[str, str], ...]
    install: str
    tested: bool
    source: str
    source_date: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A runtime that does not work there.

    Args:
        runtime: its id.
        reason: why, one phrase.
        apart: environments to go to instead of one, where what was asked for only fits apart.
        source, source_date: where that comes from.
    """

    runtime: str
    reason: str
    apart: tuple[str, ...]
    source: str
    source_date: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked and what works.

    Args:
        framework: as understood.
        accelerator: as understood, with what its name means.
        ways: runtimes that work, best supported first.
        refused: the framework's other runtimes.
        way_out: (runtime, status) to go to where the framework has no future, or no way, there.
        unknown: libraries of which no pins are kept.
    """

    framework: str
    accelerator: str
    ways: tuple[Way, ...]
    refused: tuple[Refusal, ...]
    way_out: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """An accelerator as far as packages care."""

    key: str
    kind: str
    vendor: str
    family: str
    words: str


def resolve_environment(framework: str, accelerator: str, stated: Sequence[str]) -> Answer:
    """Return the environments that work for a framework on an accelerator.

    Args:
        framework: a framework, or a runtime id for one way of running it.
        accelerator: `cpu`, or any name of the catalog.
        stated: what must be in it too: `LIB`, `LIB==VERSION`, `python==3.12`, `cuda==12`.

    Raises:
        NotFound: the framework or the accelerator is not known.
        BadInput: the accelerator's name is ambiguous, or something stated is no name and version.
    """
    name, runtimes = _runtimes(framework)
    place = _place(accelerator)
    wanted = _stated(stated)
    ways: list[Way] = []
    refused: list[Refusal] = []
    for runtime in runtimes:
        found = _one(runtime, place, wanted)
        if isinstance(found, Way):
            ways.append(found)
        else:
            refused.append(found)
    ways.sort(key=lambda way: STATUSES.index(way.status))
    kept = {known_name(one, place.kind) for one in wanted if one not in NOT_PACKAGES}
    unknown = tuple(sorted(one for one in kept if one not in releases()))
    dead_end = not any(way.status in (*GOOD, "community") for way in ways)
    return Answer(name, place.words, tuple(ways), tuple(refused), _way_out(runtimes, place) if dead_end else (), unknown)


def _runtimes(framework: str) -> tuple[str, tuple[str, ...]]:
    """Return what a framework is called here, and its runtimes."""
    plain = framework.strip().lower()
    name = ASKED_AS.get(plain, plain)
    specs = catalog.runtime_specs()
    if name in specs and name not in {spec.framework for spec in specs.values()}:
        return name, (name,)
    found = tuple(identity for identity, spec in specs.items() if spec.framework == name)
    if found:
        return name, found
    known = (*dict.fromkeys(spec.framework for spec in specs.values()), *RUNTIME_IDS)
    near = get_close_matches(name, (*known, *ASKED_AS), n=1)
    hint = f"did you mean {near[0]}?" if near else "choose one of these"
    raise NotFound(f"framework {framework[:60]!r}", f"one of {', '.join(dict.fromkeys(known))}", hint)


def _place(accelerator: str) -> _Place:
    if accelerator.strip().lower() == "cpu":
        return _Place("", "cpu", "", "CPU", "any CPU")
    named = catalog.parse_name(accelerator)
    chip = catalog.accelerator(named.key)
    words = chip.name if named.said == named.key else f"{named.echo} ({chip.name})"
    return _Place(chip.key, chip.kind, chip.vendor, family_of(chip), words)


def _stated(stated: Iterable[str]) -> dict[str, str]:
    """Return versions by name, empty where any will do."""
    wanted: dict[str, str] = {}
    for one in stated:
        found = _STATED.fullmatch(one.strip())
        if found is None:
            raise BadInput(f"{one[:60]!r}", "a package as NAME or NAME==VERSION", "write it such as torch==2.9.1 or flash-attn")
        wanted[found["name"].lower()] = found["version"] or ""
    return wanted


def _one(runtime: str, place: _Place, wanted: Mapping[str, str]) -> Way | Refusal:
    """Return how one runtime works there, or why it does not."""
    support = catalog.support_of_family(runtime, place.family, place.key)
    if support.status == "unsupported":
        return Refusal(runtime, support.restrictions, (), support.source, support.source_date)
    cuda = _major(wanted.get("cuda", ""))
    if cuda is not None and cuda not in CUDA.values():
        built = " and ".join(str(one) for one in sorted(set(CUDA.values())))
        reason = f"there is no build for CUDA {cuda}: builds are for CUDA {built}"
        return Refusal(runtime, reason, (), "requirements/", "2026-12-01")
    packages = tuple(one for one in wanted if one not in NOT_PACKAGES)
    versions = {name: version for name, version in wanted.items() if version and name != "cuda"}
    found = _fitting(runtime, (*PACKAGES[runtime], *packages), place.kind, versions)
    if not found.fits:
        return Refusal(runtime, found.conflict, _apart(found), "catalog/data/pins.csv", "2026-12-01")
    spec = _spec(runtime, place, cuda)
    if spec is None and place.kind == "cpu" and not wanted:
        return _base(runtime, support)
    if spec is not None and _holds(spec, packages, versions):
        return _tested(runtime, support, spec)
    unread = tuple(one for one in packages if known_name(one, place.kind) not in releases())
    return _resolved(runtime, support, found.environments[0], _build(runtime, place, cuda), unread)


def _fitting(runtime: str, names: tuple[str, ...], kind: str, versions: Mapping[str, str]) -> Resolution:
    """Return what fits together, on the newest Python that an environment of the runtime was resolved for where one will do.

    Metadata often names only the oldest Python; wheels for the newest come later.
    """
    newest = max((spec.python_to for spec in catalog.environments_of(runtime)), default=(3, 13))
    if "python" not in versions:
        for minor in range(newest[1], 7, -1):
            found = resolve(names, kind, {**versions, "python": f"3.{minor}"})
            if found.fits:
                return found
    return resolve(names, kind, versions)


def _major(version: str) -> int | None:
    return int(version.split(".", maxsplit=1)[0]) if version else None


def _apart(found: Resolution) -> tuple[str, ...]:
    return tuple(f"{' and '.join(one.holds)}: {one.words}" for one in found.environments)


def _spec(runtime: str, place: _Place, cuda: int | None) -> EnvironmentSpec | None:
    """Return the first environment of this repository for a runtime on that accelerator, on a CUDA that drives it."""
    most = 12 if place.key.startswith(BEFORE_CUDA_13) else None
    for spec in catalog.environments_of(runtime):
        brings = CUDA.get(spec.id)
        fits = spec.kind == place.kind and spec.vendor in ("", place.vendor)
        if fits and (brings is None or ((cuda is None or cuda == brings) and (most is None or brings <= most))):
            return spec
    return None


def _pins_of(file: str) -> tuple[tuple[str, str], ...]:
    """Return what a requirements file pins, in its order: what was asked for, then what that brings along."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = (_PIN.match(line) for line in text.split("\n"))
    return tuple((one["name"], one["version"]) for one in found if one is not None)


def _holds(spec: EnvironmentSpec, packages: Iterable[str], versions: Mapping[str, str]) -> bool:
    """Whether an environment's file holds all that is stated beside the framework, in the stated versions."""
    pins = {_plain(name): version for name, version in _pins_of(spec.requirements)}
    python = versions.get("python", "")
    numbers = tuple(int(part) for part in python.split(".")[:2] if part.isdigit())
    if python and not spec.python_from <= numbers <= spec.python_to:
        return False
    if any(_plain(name) not in pins for name in packages):
        return False
    stated = ((_plain(name), version) for name, version in versions.items() if name != "python")
    return all(pins[name] == version or pins[name].startswith(f"{version}.") for name, version in stated)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _base(runtime: str, support: Support) -> Way:
    """Return the environment that `./tandem` makes by itself, which holds the CPU runtimes."""
    asked = catalog.runtime_specs()[runtime].distributions
    pins = tuple(pin for pin in _pins_of("requirements.txt") if _plain(pin[0]) in {_plain(name) for name in asked})
    install = f"pip install {_listed(pins)}"
    return Way(runtime, support.status, support.restrictions, "3.11", tuple(sorted(pins)), install, True,
               support.source, support.source_date)  # fmt: skip


def _tested(runtime: str, support: Support, spec: EnvironmentSpec) -> Way:
    pins = _pins_of(spec.requirements)
    shown = {"jax", "jaxlib", "torch", "tensorflow", "keras", "numpy", "libtpu", "mxnet", *map(_plain, PACKAGES[runtime])}
    told = tuple(sorted(pin for pin in pins if _plain(pin[0]) in shown or _plain(pin[0]).startswith(
        ("tensorflow-tpu", "torch-", "nvidia-cuda-runtime", "nvidia-cudnn", "nvidia-nccl", "jax-"))))  # fmt: skip
    mind = "; ".join(filter(None, (spec.notes, support.restrictions)))
    python = " to ".join(f"{major}.{minor}" for major, minor in (spec.python_from, spec.python_to))
    install = f"./tandem runtimes install {spec.id}  (or: pip install -r {spec.requirements})"
    return Way(runtime, support.status, mind, python, told, install, True, support.source, support.source_date)


@dataclass(frozen=True, slots=True)
class _Build:
    """Which build of a framework an accelerator needs: the name with what goes in brackets, or a note where that is not all."""

    named: str = ""
    note: str = ""


def _build(runtime: str, place: _Place, cuda: int | None) -> _Build:
    if place.kind != "gpu":
        return _Build()
    packages, nvidia = PACKAGES[runtime], place.vendor == "NVIDIA"
    old = place.key.startswith(BEFORE_CUDA_13)
    if "jax" in packages:
        return _Build(f"jax[cuda{cuda or (12 if old else 13)}]") if nvidia else _Build(note="with AMD's plugin: jax-rocm7-plugin")
    if "torch" in packages and not nvidia:
        return _Build(note="the build for ROCm, from PyTorch's own index")
    if "torch" in packages and (old or cuda == 12):
        return _Build(note="a build for CUDA 12, from PyTorch's own index; the default one is for CUDA 13")
    if "tensorflow" in packages:
        return _Build("tensorflow[and-cuda]") if nvidia else _Build(note="in AMD's build, tensorflow-rocm")
    return _Build(note="in the build for CUDA 11.2, mxnet-cu112") if "mxnet" in packages else _Build()


def _resolved(runtime: str, support: Support, found: Environment, build: _Build, unread: tuple[str, ...]) -> Way:
    known = tuple((name, version) for name, version in found.pins if version or name in found.holds)
    asked = [*(pin for pin in known if pin[0] in found.holds), *((name, "") for name in unread)]
    note = f"  ({build.note})" if build.note else ""
    install = f"python{found.python} -m pip install {_listed(asked, build.named)}{note}"
    return Way(runtime, support.status, support.restrictions, found.python, known, install, False,
               support.source, support.source_date)  # fmt: skip


def _listed(pins: Iterable[tuple[str, str]], named: str = "") -> str:
    """Return pins as an installer takes them, one of them under the name of its build."""
    def word(name: str, version: str) -> str:
        written = named if named.startswith(f"{name}[") else name
        text = f"{written}=={version}" if version else written
        return f"'{text}'" if "[" in text else text

    return " ".join(word(name, version) for name, version in pins)


def _way_out(runtimes: Iterable[str], place: _Place) -> tuple[tuple[str, str], ...]:
    """Return where to go from a framework that has no good way there: its successors that have one, else whatever has."""
    own = tuple(runtimes)
    framework = catalog.runtime_specs()[own[0]].framework
    statuses = {one: catalog.support_of_family(one, place.family, place.key).status for one in RUNTIME_IDS}
    near = [one for one in SUCCESSORS[framework] if statuses[one] in GOOD and one not in own]
    rest = [one for one in RUNTIME_IDS if statuses[one] in GOOD and one not in (*own, *near)]
    return tuple((one, statuses[one]) for one in near or rest)
