"""One file as text, whatever its encoding; never opens a path.

Python declares encodings in its first lines, Windows writes UTF-16, old code is latin-1: each is read as what it is, and bytes
that
are no text at all are refused with a reason.
"""

import codecs
import re
from dataclasses import dataclass

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)
_TEXT_CODECS = frozenset({"ascii", "utf-8", "iso8859-1", "iso8859-15", "cp1252", "cp1251", "koi8-r", "gbk", "gb2312", "gb18030",
                          "big5", "euc_jp", "shift_jis", "euc_kr", "utf-16", "utf-32"})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to scan.

    Args:
        name: path within the folder or archive, with forward slashes; only shown and used for its ending.
        content: its text or its raw bytes; None where it cannot be opened.
    """

    name: str
    content: str | bytes | None


def text_of(content: str | bytes) -> str | None:
    """Return a file as text with line feeds, or None when it is no text.

    Args:
        content: text, or bytes in UTF-8, UTF-16 or UTF-32 with a mark, or in the encoding of a coding line; else latin-1.
    """
    text = content if isinstance(content, str) else _decoded(content)
    if text is None:
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    return text.replace("\f", " ").replace("\x0b", " ")


def _decoded(raw: bytes) -> str | None:
    for mark, codec in _MARKS:
        if raw.startswith(mark):
            return raw.decode(codec, errors="replace")
    if b"\0" in raw[:4096]:
        return _without_mark(raw)
    declared = _declared(raw)
    if declared is not None:
        return raw.decode(declared, errors="replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _declared(raw: bytes) -> str | None:
    """Return the text codec that a coding line names, where it is one that only maps bytes to characters."""
    for line in raw.split(b"\n", 2)[:2]:
        found = _CODING.match(line[:200])
        if found is None:
            continue
        try:
            name = codecs.lookup(found.group(1).decode("ascii", errors="replace")).name
        except LookupError:
            return None
        return name if name in _TEXT_CODECS else None
    return None


def _without_mark(raw: bytes) -> str | None:
    """Return UTF-16 that bears no mark: text of ASCII characters has a null in every second byte."""
    head = raw[:4096]
    for codec, offset in (("utf-16-le", 1), ("utf-16-be", 0)):
        nulls = head[offset::2]
        if nulls and nulls.count(0) > 0.9 * len(nulls) and head[1 - offset :: 2].count(0) == 0:
            return raw.decode(codec, errors="replace")
    return None
