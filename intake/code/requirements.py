"""What a project asks to be installed: requirement files, project files, conda environments and pip lines, as data.

Nothing is resolved or looked up: names, versions and extras as they are written, and what is known of them by the rules of pins.
"""

import ast
import configparser
import re
import tomllib
from collections.abc import Iterator
from typing import cast

from core.finding import Place, Requirement
from intake.code.view import View

_LINE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*+)\s*+(?:\[([^\]]*)\])?\s*+"
                   r"(?:@\s*+\S+|\(?\s*+((?:[=<>!~]=?=?\s*+[^\s,;()=<>!~]++\s*+(?:,\s*+)?)*+)\)?)?\s*+(?:;.*)?$")
_CONDA = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\s*(=|==|>=|<=|>|<|~=|!=)\s*([^=\s,]+)\S*)?(.*)$")
_PIP = re.compile(r"(?:^|[\s;&|(])(?:pip|pip3|python3?\s+-m\s+pip|uv\s+pip|conda|mamba|poetry|uv)\s+(?:install|add)\s+(.*)")
_LONGEST = 500


def requirement(text: str, place: Place) -> Requirement | None:
    """Return what one line asks for, or None when it is no requirement.

    Args:
        text: such as `torch==1.13.1+cu117 ; python_version < "3.11"`.
        place: of the line.
    """
    plain = text.split(" #", maxsplit=1)[0].strip().strip("\"'").rstrip("\\").strip()
    if not plain or plain.startswith(("#", "-", "$")) or len(plain) > _LONGEST:
        return None
    if "#egg=" in plain:
        plain = plain.split("#egg=")[1].split("&")[0]
    if "://" in plain.split("@")[0]:
        name = re.sub(r"(\.git)?(@.*)?$", "", plain.rsplit("/", 1)[-1])
        return Requirement(_canonical(name), "", (), place) if re.fullmatch(r"[A-Za-z0-9._-]+", name) else None
    found = _LINE.match(plain)
    if found is None:
        return None
    extras = tuple(part.strip().lower() for part in (found.group(2) or "").split(",") if part.strip())
    return Requirement(_canonical(found.group(1)), re.sub(r"\s", "", found.group(3) or "").rstrip(","), extras, place)


def of_lines(text: str, name: str) -> list[Requirement]:
    """Return what a requirement file asks for.

    Args:
        text: of the file.
        name: of the file.
    """
    found = (requirement(line, Place(name, number)) for number, line in enumerate(text.split("\n"), 1))
    return [one for one in found if one is not None]


def of_pyproject(text: str, name: str) -> tuple[list[Requirement], str]:
    """Return what a `pyproject.toml` or Pipfile asks for, and what it says of Python.

    Args:
        text: of the file.
        name: of the file.
    """
    try:
        document = cast("dict[str, object]", tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return [], ""
    wanted: list[str] = []
    project = _table(document, "project")
    wanted.extend(_texts(project.get("dependencies")))
    for group in _table(project, "optional-dependencies").values():
        wanted.extend(_texts(group))
    for group in _table(document, "dependency-groups").values():
        wanted.extend(_texts(group))
    wanted.extend(_texts(_table(document, "build-system").get("requires")))
    poetry = _table(_table(document, "tool"), "poetry")
    for table in (_table(poetry, "dependencies"), _table(poetry, "dev-dependencies"), _table(document, "packages")):
        wanted.extend(f"{key}{_poetry(value)}" for key, value in table.items() if key != "python")
    python = project.get("requires-python", _table(poetry, "dependencies").get("python", ""))
    lines = text.split("\n")
    found = (requirement(one, Place(name, _line_of(one, lines))) for one in wanted)
    return [one for one in found if one is not None], python if isinstance(python, str) else ""


def of_setup_cfg(text: str, name: str) -> tuple[list[Requirement], str]:
    """Return what a `setup.cfg` asks for, and what it says of Python.

    Args:
        text: of the file.
        name: of the file.
    """
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        return [], ""
    wanted = parser.get("options", "install_requires", fallback="").split("\n")
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            wanted.extend(value.split("\n"))
    lines = text.split("\n")
    found = (requirement(one, Place(name, _line_of(one, lines))) for one in wanted)
    return [one for one in found if one is not None], parser.get("options", "python_requires", fallback="")


def of_conda(text: str, name: str) -> list[Requirement]:
    """Return what a conda environment asks for, pip's part included; read line by line, not as YAML.

    Args:
        text: of the file.
        name: of the file.
    """
    found: list[Requirement] = []
    pip = False
    for number, line in enumerate(text.split("\n"), 1):
        dash, _, rest = line.strip().partition("-")
        item = re.split(r"\s#", rest.strip(), maxsplit=1)[0].strip()
        if dash or not item:
            pip = pip and not line[:1].strip()
            continue
        entry = item.strip("\"'")
        if entry.startswith("pip:"):
            pip = True
            continue
        one = requirement(entry, Place(name, number)) if pip else None
        if one is None and not entry.startswith(("-", "{")) and ":" not in entry.split("::")[0]:
            one = _conda(entry.split("::")[-1], Place(name, number))
        if one is not None:
            found.append(one)
    return found


def of_setup_py(tree: ast.Module, view: View) -> tuple[list[Requirement], str]:
    """Return what a call of `setup` asks for, and what it says of Python.

    Args:
        tree: of the file.
        view: of the file, for its name.
    """
    found: list[Requirement] = []
    python = ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        if getattr(call.func, "id", getattr(call.func, "attr", "")) != "setup":
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        version = given.get("python_requires")
        if isinstance(version, ast.Constant) and isinstance(version.value, str):
            python = version.value
        for key in ("install_requires", "extras_require", "setup_requires", "tests_require"):
            found.extend(_of_literal(given[key], tree, view) if key in given else ())
    return found, python


def _of_literal(value: ast.expr, tree: ast.Module, view: View) -> Iterator[Requirement]:
    """Yield what the texts of a list or mapping ask for."""
    for part in ast.walk(_named(value, tree)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            one = requirement(part.value, Place(view.name, part.lineno))
            if one is not None:
                yield one


def of_command(text: str, place: Place) -> Iterator[Requirement]:
    """Yield what a shell line installs.

    Args:
        text: such as `pip install "torch==2.1.0+cu118" -f https://...`.
        place: of the line.
    """
    for found in _PIP.finditer(text[:4000]):
        skip = False
        for word in re.split(r"\s+", re.split(r"&&|\|\||;|\|", found.group(1))[0]):
            if skip or word.startswith("-"):
                skip = word in ("-f", "-r", "-c", "-i", "-e", "--find-links", "--index-url", "--extra-index-url",
                    "--requirement", "-n", "--name")
                continue
            one = requirement(word, place)
            if one is not None:
                yield one


def _named(value: ast.expr, tree: ast.Module) -> ast.AST:
    """Return the list that a name stands for, where it is assigned once in the file."""
    if not isinstance(value, ast.Name):
        return value
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == value.id for one in node.targets):
            return node.value
    return value


def _conda(entry: str, place: Place) -> Requirement | None:
    found = _CONDA.match(entry)
    if found is None:
        return None
    sign = {"=": "=="}.get(found.group(2) or "", found.group(2) or "")
    return Requirement(_canonical(found.group(1)), f"{sign}{found.group(3)}" if sign else "", (), place)


def _poetry(value: object) -> str:
    """Return a version of Poetry's or Pipfile's as a specifier: a caret is a lower bound with the next major version above it."""
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("version", "")
    if not isinstance(value, str) or value in ("*", ""):
        return ""
    found = re.match(r"\^\s*(\d+)((?:\.\d+)*)", value)
    if found is not None:
        return f">={found.group(1)}{found.group(2)},<{int(found.group(1)) + 1}"
    return value if value[:1] in "=<>!~" else f"=={value}"


def _table(mapping: dict[str, object], key: str) -> dict[str, object]:
    value = mapping.get(key)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else []


def _line_of(wanted: str, lines: list[str]) -> int:
    name = re.split(r"[\s=<>!~\[;(^@]", wanted.strip(), maxsplit=1)[0].lower()
    exact = next((number for number, line in enumerate(lines, 1) if wanted.strip() and wanted.strip() in line), None)
    if exact is not None:
        return exact
    return next((number for number, line in enumerate(lines, 1) if name and name in line.lower()), 1)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


