"""Which files a scan reads, and as what: decided by name alone, so that what is not wanted is never opened."""

from pathlib import PurePosixPath

PYTHON, NOTEBOOK, NATIVE, SHELL, CONTAINER = "python", "notebook", "native", "shell", "container"
REQUIREMENTS, PROJECT, SETUP, CONDA, SETTINGS = "requirements", "pyproject", "setup.cfg", "environment.yml", "settings"
_BY_ENDING = {
    ".py": PYTHON, ".pyw": PYTHON, ".pyi": PYTHON, ".ipynb": NOTEBOOK,
    ".cu": NATIVE, ".cuh": NATIVE, ".hip": NATIVE, ".cpp": NATIVE, ".cc": NATIVE, ".cxx": NATIVE, ".c": NATIVE, ".h": NATIVE,
    ".hpp": NATIVE, ".hh": NATIVE, ".pyx": NATIVE,
    ".sh": SHELL, ".bash": SHELL, ".zsh": SHELL, ".slurm": SHELL, ".sbatch": SHELL, ".pbs": SHELL,
    ".dockerfile": CONTAINER, ".def": CONTAINER,
    ".yml": SETTINGS, ".yaml": SETTINGS,
}
_BY_NAME = {"pyproject.toml": PROJECT, "setup.cfg": SETUP, "dockerfile": CONTAINER, "containerfile": CONTAINER,
    "pipfile": PROJECT,
            "makefile": SHELL}
_PASSED_OVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "site-packages", ".tox",
                          ".ipynb_checkpoints", ".mypy_cache", ".eggs"})


def kind_of(name: str) -> str | None:
    """Return as what a file is read, or None when it is not.

    Args:
        name: its path, with forward slashes.
    """
    path = PurePosixPath(name)
    if not _PASSED_OVER.isdisjoint(path.parts[:-1]):
        return None
    base = path.name.lower()
    if base in _BY_NAME:
        return _BY_NAME[base]
    if base.startswith("dockerfile.") or base.endswith("-dockerfile"):
        return CONTAINER
    if base.endswith((".txt", ".in")) and ("require" in base or "constraint" in base or "requirements" in path.parts[:-1]):
        return REQUIREMENTS
    ending = path.suffix.lower()
    if ending in (".yml", ".yaml") and ("environment" in base or base.startswith(("conda", "env"))):
        return CONDA
    return _BY_ENDING.get(ending)


def is_wanted(name: str) -> bool:
    """Whether a scan reads a file of that name."""
    return kind_of(name) is not None
