"""The address bar: every choice of a page lives there, so that a link is the view and a reload loses nothing.

A page reads its address first (`chosen`, `number`, `several`, `text`), hands the values to its widgets (`follow`), and each
widget writes its own change back before the page runs again (`write`). The address is the truth, session state only a copy.
A value that does not exist is named to the reader, never dropped silently.
"""

import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import cast
from urllib.parse import urlencode

import streamlit as st

from core.errors import BadInput
from pages.parts.text import plain

LONGEST_PACKED = 24_000
_HERE = ("127.0.0.1", "localhost", "[::1]", "::1")
LARGEST_TEXT = 1_000_000


def chosen(name: str, options: Sequence[str], default: str) -> str:
    """Return the value of a query parameter when it is one of `options`, else say so and return `default`."""
    value = st.query_params.get(name)
    if value is None or value in options:
        return value or default
    _say_bad(name, value, "one of " + ", ".join(options), default or "all")
    return default


def number(name: str, low: int, high: int, default: int) -> int:
    """Return a whole number out of the address, else say what was wrong and return `default`."""
    value = st.query_params.get(name)
    if value is None:
        return default
    if value.isascii() and value.isdigit() and low <= int(value[:12]) <= high:
        return int(value)
    _say_bad(name, value, f"a whole number from {low} to {high}", str(default))
    return default


def several(name: str, options: Sequence[str]) -> list[str]:
    """Return the values of a repeated parameter that exist; the others are named."""
    values = list(dict.fromkeys(st.query_params.get_all(name)))
    gone = [value for value in values if value not in options]
    if gone:
        named = ", ".join(f"“{value[:40]}”" for value in gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        verb = "is" if len(gone) == 1 else "are"
        said = f"The link asks for {name} {named}, which {verb} not there. Showing the others."
        st.warning(plain(said, 600), icon=":material/link_off:")
    return [value for value in values if value in options]


def is_local() -> bool:
    """Whether the browser runs on this machine, with nothing between: only then may it name paths of it."""
    asked, told = st.context.headers, str(st.context.headers.get("Host", ""))
    host = told.rpartition(":")[0] if told.rpartition(":")[2].isdigit() else told
    forwarded = any(asked.get(name) for name in ("X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-Ip"))
    return host in _HERE and not forwarded and st.get_option("server.address") in _HERE


def text(name: str) -> str:
    """Return a free text out of the address, empty when there is none."""
    return st.query_params.get(name, "")


def follow(name: str, value: object) -> str:
    """Set the widget of this name to what the address says and return its key."""
    if st.session_state.get(name) != value:
        st.session_state[name] = value
    return name


def write(name: str, *leave: str) -> Callable[[], None]:
    """Return a callback that copies the widget `name` into the address; empty values leave it.

    Args:
        name: key of the widget and name of the parameter.
        leave: other parameters that no longer hold after this change.
    """

    def copy() -> None:
        value = st.session_state.get(name)
        put(name, value)
        for other in leave:
            put(other, None)

    return copy


def put(name: str, value: object) -> None:
    """Write one parameter; None and empty values remove it."""
    if value in (None, "", [], ()):
        if name in st.query_params:
            del st.query_params[name]
    elif isinstance(value, (list, tuple)):
        st.query_params[name] = [str(item) for item in cast("Iterable[object]", value)]
    else:
        st.query_params[name] = str(value)


def page_address(page: str, **parameters: str) -> str:
    """Return the full address of a page of this portal, as this browser reaches it."""
    base = (st.context.url or "").split("?")[0].rstrip("/")
    root = base[: -len(page)].rstrip("/") if page and base.endswith("/" + page) else base
    return f"{root}/{page}?{urlencode(parameters)}"


def pack(content: str) -> str | None:
    """Return a text as a query value, or None when it is too long for an address."""
    packed = base64.urlsafe_b64encode(zlib.compress(content.encode(), 9)).decode().rstrip("=")
    return packed if len(packed) <= LONGEST_PACKED else None


def unpack(packed: str) -> str:
    """Return the text behind `pack`.

    Raises:
        BadInput: it was cut, changed, or grows beyond a megabyte.
    """
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), LARGEST_TEXT)
        content = data.decode() if reader.eof and not reader.unconsumed_tail else None
    except (ValueError, zlib.error, binascii.Error):
        content = None
    if content is None:
        raise BadInput("a link whose workload cannot be read", "an unchanged link", "ask for it again or paste the workload")
    return content


def _say_bad(name: str, value: str, expected: str, used: str) -> None:
    st.warning(
        plain(f"The link asks for {name} “{value[:60]}”, which is not {expected}. Showing {used}.", 600),
        icon=":material/link_off:",
    )
