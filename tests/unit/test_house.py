"""The house rules that no linter knows; each has a name in ARCHITECTURE.md or docs/decisions."""

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import click
import pytest

from cli.main import COMMANDS, tandem

ROOT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("core", "catalog", "intake", "probes", "advisor", "db", "reports", "services", "cli", "pages", "docs")
SOURCES = sorted(chain(ROOT.glob("*.py"), *((ROOT / room).rglob("*.py") for room in ROOMS)))
PAGES = sorted(chain(ROOT.glob("app.py"), (ROOT / "pages").rglob("*.py")))
LISTING = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
TRACKED = sorted(ROOT / name for name in LISTING.stdout.split("\n") if name and (ROOT / name).is_file())
FRAMEWORKS = ("jax", "jaxlib", "flax", "torch", "tensorflow", "keras", "mxnet", "transformers")
GUIDE = ROOT / "docs" / "guide.md"


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _modules(room: str) -> list[str]:
    files = sorted((ROOT / room).rglob("*.py"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]


def test_importing_every_service_and_command_loads_no_framework() -> None:
    modules = [name for name in (*_modules("services"), *_modules("cli")) if not name.endswith("__main__")]
    code = f"import importlib, sys; [importlib.import_module(name) for name in {modules!r}]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {name.split(".")[0] for name in done.stdout.split()} & {*FRAMEWORKS, "streamlit"}


def test_a_worker_needs_nothing_but_the_standard_library_numpy_and_its_framework() -> None:
    imports = "import probes.worker; from probes import backends, blocks, kernels; from probes.backends import reference"
    every = "backends.backend_modules(); blocks.block_modules(); kernels.kernel_modules()"
    code = f"import sys; before = set(sys.modules); {imports}; {every}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) - {"__mp_main__"} == {"core", "numpy", "probes"}


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = "import sys; from cli.main import tandem; print(*tandem.list_commands(None)); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "advise" in done.stdout
    assert not {name.split(".")[0] for name in done.stderr.split()} & {*ROOMS[1:-3]}


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_source_file_is_short_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") < 400
    assert ast.get_docstring(tree) or not tree.body
    long = [f"{node.name} ({length})" for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if (length := (node.end_lineno or 0) - node.lineno + 1) >= 60]
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_source_file_nests_less_than_five_deep(path: Path) -> None:
    deep: list[int] = []

    def walk(node: ast.AST, depth: int) -> None:
        for child in ast.iter_child_nodes(node):
            inner = depth
            if isinstance(child, ast.For | ast.While | ast.If | ast.With | ast.Try):
                chained = isinstance(node, ast.If) and child in node.orelse  # elif is no deeper than its if
                inner = depth if chained else depth + 1
                if inner > 4:
                    deep.append(child.lineno)
            walk(child, 0 if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else inner)

    walk(ast.parse(path.read_text(encoding="utf-8")), 0)
    assert not deep


@pytest.mark.parametrize("path", [path for path in SOURCES if path.parts[len(ROOT.parts)] not in ("cli", "docs")], ids=_name)
def test_only_the_command_line_prints(path: Path) -> None:
    calls = [node.lineno for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"]
    assert not calls


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_a_page_imports_only_services_reports_and_core(path: Path) -> None:
    rooms = _imports(ast.parse(path.read_text(encoding="utf-8"))) & {*ROOMS, *FRAMEWORKS, "sqlalchemy", "altair", "pandas"}
    assert rooms <= {"services", "reports", "core", "pages"}


@pytest.mark.parametrize("path", [path for path in SOURCES if not {"backends", "readers"} & {*path.parts}], ids=_name)
def test_frameworks_are_named_only_by_backends_and_readers(path: Path) -> None:
    assert not _imports(ast.parse(path.read_text(encoding="utf-8"))) & {*FRAMEWORKS}


@pytest.mark.parametrize("path", sorted((ROOT / "probes" / "backends").rglob("*.py")), ids=_name)
def test_a_backend_imports_its_framework_inside_functions_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    assert not _imports(top) & {*FRAMEWORKS}


def test_core_imports_the_standard_library_only() -> None:
    for path in (ROOT / "core").rglob("*.py"):
        assert _imports(ast.parse(path.read_text(encoding="utf-8"))) <= {*sys.stdlib_module_names, "core"}, path


def test_nothing_is_left_to_do_and_nothing_names_a_machine_or_a_registry() -> None:
    marks = re.compile(r"\b([T]ODO|[F]IXME|[X]XX|[H]ACK)\b")
    places = re.compile(
        r"[p]ythonhosted|[r]egistry\.npmjs|deb\.[d]ebian|[f]iles\.python|pypi\.[o]rg|/([w]ork|[f]arm)/|\.[l]ibrary/|\.\./[s]hared",
        re.IGNORECASE,
    )
    found: list[str] = []
    for path in TRACKED:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if places.search(line) or (path.suffix == ".py" and marks.search(line)):
                found.append(f"{_name(path)}:{number}: {line.strip()[:80]}")
    assert not found


@pytest.mark.parametrize("path", [ROOT / "requirements.txt", *sorted((ROOT / "requirements").glob("*.txt"))], ids=_name)
def test_every_requirement_is_pinned_exactly_and_named_once(path: Path) -> None:
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").split("\n")]
    wanted = [line for line in lines if line and not line.startswith("-")]
    assert wanted
    assert [line for line in wanted if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.+]*( ; .+)?", line)] == []
    names = [_canonical(line.split("==")[0]) for line in wanted]
    assert len(names) == len(set(names))


OWN_ENVIRONMENTS = ("requirements/torch-xla.txt", "requirements/mxnet.txt")
"""Of runtimes whose pins conflict with the base."""


@pytest.mark.parametrize(("folders", "files"), [
    (ROOMS, ("requirements.txt", *OWN_ENVIRONMENTS)),
    (("bench", "tests"), ("requirements.txt", "requirements/test.txt", *OWN_ENVIRONMENTS)),
], ids=["what is shipped", "tests and bench"])
def test_whatever_is_imported_is_a_pinned_requirement(folders: tuple[str, ...], files: tuple[str, ...]) -> None:
    lines = [line for file in files for line in (ROOT / file).read_text(encoding="utf-8").split("\n") if "==" in line]
    pinned = {_canonical(line.split("==")[0]) for line in lines}
    # what makes samples is run by hand, in an environment that the script names
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py") if not path.name.startswith("make_")]
    imported = {name for path in paths for name in _imports(ast.parse(path.read_text(encoding="utf-8")))}
    foreign = imported - {*sys.stdlib_module_names, *ROOMS, "bench", "tests", "app"}
    holders = packages_distributions()
    assert foreign
    assert [name for name in sorted(foreign) if not {_canonical(holder) for holder in holders.get(name, [name])} & pinned] == []


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "work"])
def test_every_command_and_flag_has_its_line_in_the_guide(name: str) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    command = tandem.get_command(click.Context(tandem), name)
    assert command is not None
    assert command.help
    assert f"### `{name}`" in guide
    section = guide.split(f"### `{name}`")[1].split("\n### ")[0].split("\n## ")[0]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden]
    flags = [flag for option in options for flag in (*option.opts, *option.secondary_opts)]
    assert [flag for flag in flags if f"`{flag}" not in section] == []


def test_every_room_and_plug_in_folder_is_named_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [path.parent.name for path in ROOT.glob("*/__init__.py")]
    assert [room for room in rooms if room not in text] == []
