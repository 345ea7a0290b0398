"""C sources of the benches, compiled when they are needed by the compiler that is here, into a folder that is thrown away."""

import os
import shutil
import subprocess
from pathlib import Path

from core.errors import BadInput, one_line

NATIVE = Path(__file__).resolve().parent / "native"


def compiler() -> str:
    """Return the system's C compiler.

    Raises:
        BadInput: there is none.
    """
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise BadInput("no C compiler", "cc, gcc or clang in PATH, or CC set", "install one; nothing can be compared without it")


def build(source: str, folder: Path, *flags: str) -> Path:
    """Compile one source of `bench/native` and return the path of what came out.

    Args:
        source: file name.
        folder: where it goes.
        flags: for the compiler.

    Raises:
        BadInput: there is no compiler, or it refused.
    """
    target = folder / Path(source).stem
    command = (compiler(), "-O3", *flags, "-o", str(target), str(NATIVE / source), "-lm")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BadInput(one_line(f"{command[0]} refused {source}: {done.stderr}", 300), "a program", "see the message")
    return target
