"""Hostile code bases: what runs when it is imported or installed, archives that bomb or lead elsewhere, text no parser likes."""

import io
import random
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterator

from tests.samples.hostile_models.parts import EITHER, READ, REFUSED, Case, Target, overlapped, packed

CALL = b"import torch\nx.cuda()\n"
MIB = 2**20


def _entries(*entries: tuple[str | zipfile.ZipInfo, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    kept = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(kept, "w", how) as archive:
        warnings.simplefilter("ignore")  # a name twice
        for name, content in entries:
            archive.writestr(name, content)
    return kept.getvalue()


def _special(kind: int) -> bytes:
    info = zipfile.ZipInfo("special.py")
    info.external_attr = (kind | 0o777) << 16
    return _entries((info, b"/etc/passwd"), ("a.py", CALL))


def _million() -> bytes:
    return _entries(*((zipfile.ZipInfo(f"{at}"), b"") for at in range(1_000_000)))


def _lying() -> bytes:
    """Return a zip whose entry says that it is small."""
    data = bytearray(packed({"a.py": b"# " + random.Random(0).randbytes(100).hex().encode() * 1000}))
    for mark, offset in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        at = data.index(mark) + offset
        data[at : at + 4] = (100).to_bytes(4, "little")
    return bytes(data)


def _zip64() -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as archive, archive.open("a.py", "w", force_zip64=True) as file:
        file.write(CALL)
    return kept.getvalue()


def _nested(depth: int) -> bytes:
    data = b"#" * 20 * MIB
    for _ in range(depth):
        data = packed({"inner.zip": data})
    return data


def cases(target: Target) -> Iterator[Case]:
    """Yield all of them."""
    evil = f"import os\nopen({str(target.absent)!r}, 'w')\nos.system('touch {target.absent}')\n".encode()
    names = (
        "setup.py",
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "__init__.py",
        "evil.pth",
        "train.py",
        "noxfile.py",
    )
    yield Case("F7", "code that runs when it is imported", "c.zip", lambda _: packed(dict.fromkeys(names, evil)), outcome=READ)
    hook = b'[build-system]\nbuild-backend = "evil"\nbackend-path = ["."]\n'
    yield Case(
        "F7", "a build backend of its own", "c.zip", lambda _: packed({"pyproject.toml": hook, "evil.py": evil}), outcome=READ
    )
    text = {
        "10,000 brackets": (b"(" * 10_000 + b")" * 10_000, READ, "in parts"),
        "a line of 50 MB": (b"x = '" + b"a" * 50_000_000 + b"'", REFUSED, "bytes"),
        "a line of 100,000 characters": (b"x = '" + b"a" * 100_000 + b"'", REFUSED, "characters"),
        "a million signs": (b"x = " + b"-" * 1_000_000 + b"1", REFUSED, "characters"),
        "1,000 levels": (b"\n".join(b" " * at + b"if x:" for at in range(1_000)), READ, "in parts"),
        "null bytes": (b"\0\1\2\xff" * 1000, REFUSED, "no text"),
        "an encoding that unpacks": (b"# coding: zlib\nx.cuda()\n", READ, ""),
        "an encoding of other letters": (b"# coding: utf-7\n+AGE-\nx.cuda()\n", READ, ""),
    }
    for what, (data, outcome, said) in text.items():
        yield Case("F8", what, "a.py", _kept(data), said, outcome)
    odd = ["a\n\x1b[31mb", "x" * 5_000, "\u202eevil", "CON", "<script>", "nul\0l", "-rf", "a b'\""]
    yield Case("F9", "odd names in a zip", "c.zip", lambda _: packed({f"{name}.py": CALL for name in odd}), outcome=READ)
    for what, name in {
        "upwards": "../a.py",
        "absolute": "/etc/a.py",
        "a drive": "C:/a.py",
        "backslashes": "a\\..\\..\\b.py",
    }.items():
        yield Case("F9", f"a name that leads {what}", "c.zip", _kept(packed({name: CALL})), "paths within the archive")
    kinds = {"link": stat.S_IFLNK, "fifo": stat.S_IFIFO, "device": stat.S_IFBLK, "socket": stat.S_IFSOCK}
    for what, kind in kinds.items():
        yield Case("F10", f"a {what} in a zip", "c.zip", _kept(_special(kind)), outcome=READ)
    yield Case("F10", "a zip called .py", "a.py", _kept(packed({"a.py": CALL})), "no text")
    yield Case("F10", "text called .zip", "a.zip", _kept(CALL), "no zip archive")
    yield Case("F10", "text called .ipynb", "a.ipynb", _kept(CALL), "no notebook")
    yield Case("F11", "a flat bomb", "c.zip", lambda _: packed({"a.py": b"#" * 400 * MIB}), "a ratio of at most")
    yield Case("F11", "a bomb 5 deep", "c.zip", lambda _: _nested(5), "no code")
    yield Case("F11", "an overlapped bomb", "c.zip", lambda _: overlapped(4_000), "a ratio of at most")
    line = random.Random(0).randbytes(10_000).hex().encode()
    comment = b"\n".join([b"# " + line[:15_000]] * 70)
    yield Case("F11", "an overlapped bomb below the ratio", "c.zip", lambda _: overlapped(4_000, comment), "when unpacked")
    yield Case("F12", "a million empty entries", "c.zip", lambda _: _million(), "1000000 entries")
    yield Case(
        "F12",
        "names twice and case twins",
        "c.zip",
        _kept(_entries(("a.py", CALL), ("A.py", CALL), ("a.py", CALL))),
        outcome=READ,
    )
    yield Case("F12", "a size that lies", "c.zip", _kept(_lying()), outcome=EITHER)
    yield Case("F12", "zip64", "c.zip", _kept(_zip64()), outcome=READ)
    cells = b'{"cells": [' + b'{"cell_type": "code", "source": ["x.cuda()\\n"]},' * 50_000 + b"{}]}"
    yield Case("F13", "a notebook of 50,000 cells", "a.ipynb", _kept(cells), "more than 2000 findings", READ)
    yield Case("F13", "a notebook 100,000 deep", "a.ipynb", _kept(b"[" * 100_000), "no notebook")
    bomb = b"a: &a [x]\n" + b"\n".join(b"k%d: &k%d [*a, *a, *a, *a]" % (at, at) for at in range(50))
    tag = f'dependencies: !!python/object/apply:os.system ["touch {target.absent}"]\n'.encode()
    entity = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]><x>&b;&c;</x>'
    yield Case("F14", "an alias bomb", "c.zip", _kept(packed({"environment.yml": bomb, "a.py": CALL})), outcome=READ)
    yield Case("F14", "a tag that calls", "c.zip", _kept(packed({"environment.yml": tag, "a.py": CALL})), outcome=READ)
    yield Case("F14", "XML with entities", "a.xml", _kept(entity), "no code")


def _kept(data: bytes) -> Callable[[Target], bytes]:
    return lambda _: data
