"""Agreements that were found before: the same code on the same versions and the same device gives the same answer again.

Each is a small file, written whole under a name of its own and moved into place; one that cannot be read is found anew.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from core.codec import from_json, to_json
from core.errors import BadInput
from probes.agreement import Agreement, agrees
from probes.case import Case
from probes.environment import ROOT

SOURCES = ("core", "probes")


@dataclass
class Agreed:
    """What one runtime was found to agree on.

    Args:
        folder: where it is kept; None keeps it in this process only.
        about: whatever else an answer depends on: versions, device, the source of the programs.
    """

    folder: Path | None
    about: tuple[str, ...]
    known: dict[str, Agreement] = field(default_factory=dict[str, Agreement])

    def find(self, case: Case) -> Agreement | None:
        """Return what was found for a case, or None."""
        key = self._key(case)
        if key not in self.known and self.folder is not None:
            with suppress(OSError, BadInput):
                read = from_json(Agreement, (self.folder / key).read_bytes())
                if agrees(read, case.dtype):
                    self.known[key] = read
        return self.known.get(key)

    def keep(self, case: Case, agreement: Agreement) -> None:
        """Keep what was found; a folder that cannot be written to costs the next process a comparison, nothing else."""
        key = self._key(case)
        self.known[key] = agreement
        if self.folder is None:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            fresh = self.folder / f"{key}.{os.getpid()}"
            fresh.write_text(to_json(agreement), encoding="ascii")
            fresh.replace(self.folder / key)

    def _key(self, case: Case) -> str:
        subject = getattr(case.block, "__name__", type(case.block).__name__)
        said = (subject, sorted(case.sizes.items()), case.depth, case.mode, case.optimizer, case.dtype, case.seed)
        return sha256(repr((self.about, said)).encode()).hexdigest()


def surroundings(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what else numbers depend on: the interpreter, numpy, and variables that choose libraries, threads and compilers."""
    import numpy as np

    led = ("LD_LIBRARY_PATH", "OMP_", "MKL_", "OPENBLAS_", "CC", "CXX", "XLA_FLAGS", "TF_")
    chosen = sorted(f"{name}={value}" for name, value in environ.items() if name.startswith(led))
    return (sys.executable, sys.version, np.__version__, *chosen)


def source_digest(folders: Sequence[str] = SOURCES, root: Path = ROOT) -> str:
    """Return one digest over every source file that programs and the reference are made from."""
    digest = sha256()
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
