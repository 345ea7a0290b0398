"""The workload field: a preset by type-ahead, text that is pasted, or a small file; and the form that changes anything in it.

What is asked for lives in the address: `workload` (a preset), or `doc` (a pasted text, packed), and `set` (each changed field).
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core.errors import BadInput, TandemError
from pages.parts import link
from pages.parts.text import plain, refuse
from services import models, workloads

DEMO = "gpt2-demo:train"
PRESET_TASKS = ("train", "finetune", "infer")
ELSEWHERE = ("objective",)
"""Fields that have a control of their own on the page."""

LARGEST_PASTE = 1_000_000
EXAMPLE = """name: small language model on our own text
task: train
model: {preset: gpt2-small}
batch: 8
length: 256
"""


def workload_field() -> str | None:
    """Draw the one field of the first screen and return the text that describes the workload, or None when there is none yet.

    Raises:
        BadInput: the address holds a pasted workload that was cut or changed.
    """
    offers = tuple(f"{name}:{task}" for name in workloads.preset_names() for task in PRESET_TASKS)
    asked = link.text("workload")
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Workload",
                offers,
                index=None,
                format_func=_spaced,
                placeholder="Type a model: gpt2, resnet …",
                width=420,
                key=link.follow("workload", asked if asked in offers else None),
                on_change=link.write("workload", "doc", "set"),
                help="A preset and its task. Anything in it can be changed below. You can also paste or upload a workload file.",
            )
            with st.popover("Paste", icon=":material/content_paste:", key="paste_open", on_change="rerun"):
                _paste_form()
            with st.popover("Upload", icon=":material/upload_file:"):
                st.file_uploader(
                    "A model, or a workload as YAML or JSON",
                    key="upload",
                    on_change=_remember,
                    args=("upload",),
                    help=f"Read as data in a sandbox, never run: {', '.join(models.titles())}. Weights are not kept.",
                )
                if link.is_local():
                    st.text_input("or a path on this machine", key="path", on_change=_remember, args=("path",),
                                  placeholder="model.onnx")
            st.button(
                "Try the demo",
                icon=":material/play_arrow:",
                on_click=_take_demo,
                help="A small GPT-2, measured within a minute or two",
            )
        if "doc" in st.query_params:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.badge("Workload of your own", icon=":material/description:", color="blue")
                st.button("Discard", type="tertiary", on_click=link.put, args=("doc", None))
    _read_upload()
    for fault in st.session_state.pop("field_faults", ()):
        st.error(plain(fault), icon=":material/error:")
    if "doc" in st.query_params:
        return _pasted()
    return asked or None


def understood(text: str) -> tuple[workloads.Understood, workloads.Understood]:
    """Return the workload with the changes of the address applied, and as the text alone has it.

    Raises:
        BadInput: the text or a change cannot be used.
    """
    base = workloads.understand(text)
    changes = _changes(workloads.form_fields(base.document))
    if not changes:
        return base, base
    return workloads.understand(json.dumps(workloads.apply_fields(base.document, changes))), base


def change_form(document: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """Draw one input for every field of a workload; applying writes what differs from `base` into the address.

    Args:
        document: the workload as it is now.
        base: the workload as the preset or the pasted text has it.
    """
    fields = [field for field in workloads.form_fields(document) if field.path not in ELSEWHERE]
    stamp = zlib.crc32(json.dumps(document, sort_keys=True, default=str).encode())
    keys = {field.path: f"field:{stamp}:{field.path}" for field in fields}
    original = {field.path: field.value for field in workloads.form_fields(base)}
    with st.form("fields", border=False, enter_to_submit=True):
        for title, inside in (("Job", False), ("Model", True)):
            group = [field for field in fields if field.path.startswith("model.") is inside]
            if group:
                st.markdown(f"**{title}**")
                _inputs([field for field in group if field.kind != "flag"], keys)
                _inputs([field for field in group if field.kind == "flag"], keys)
        st.form_submit_button("Apply", type="primary", on_click=_apply, args=(keys, original))
    if "set" in st.query_params:
        st.button("Undo all changes", type="tertiary", icon=":material/undo:", on_click=link.put, args=("set", None))


def _spaced(offer: str) -> str:
    return offer.replace(":", ": ")


def _paste_form() -> None:
    with st.form("paste", border=False, width=520):
        st.text_area(
            "YAML or JSON", value=_pasted_quietly(), height=260, key="pasted", placeholder=EXAMPLE, max_chars=LARGEST_PASTE
        )
        st.form_submit_button("Use this workload", type="primary", on_click=_take_paste)


def _take_demo() -> None:
    _take({"workload": DEMO})
    st.session_state["paste_open"] = False


def _take_paste() -> None:
    content = st.session_state.get("pasted", "")
    if content.strip():
        _take_text(content)
    st.session_state["paste_open"] = False


def _remember(key: str) -> None:
    """Keep what was handed in for the page to read: a callback could not show that it is being read."""
    st.session_state["handed_in"] = st.session_state.get(key)


def _read_upload() -> None:
    """Read what was handed in, and bring the address to it."""
    given = st.session_state.pop("handed_in", None)
    if not given or (isinstance(given, str) and not link.is_local()):
        return
    name = given if isinstance(given, str) else given.name
    try:
        with st.spinner(f"Reading {plain(name, 60)} in the sandbox …", show_time=True):
            found = workloads.read(given) if isinstance(given, str) else workloads.understand_upload(name, given.getvalue())
        _take_text(json.dumps(found.document))
        st.rerun()
    except TandemError as error:
        st.session_state["field_faults"] = (str(error),)


def _take_text(content: str) -> None:
    packed = link.pack(content)
    if packed is None:
        st.session_state["field_faults"] = (
            f"got a workload of {len(content):,} characters; expected one that fits into a link; use ./tandem advise FILE",
        )
        return
    _take({"doc": packed})


def _take(parameters: Mapping[str, str]) -> None:
    for name in ("workload", "doc", "set", "objective"):
        link.put(name, parameters.get(name))


def _pasted() -> str:
    return link.unpack(link.text("doc"))


def _pasted_quietly() -> str:
    try:
        return _pasted() if "doc" in st.query_params else ""
    except BadInput:
        return ""


def _changes(fields: Sequence[workloads.FormField]) -> dict[str, object]:
    known = {str(field.path): field for field in fields}
    changes: dict[str, object] = {}
    for item in st.query_params.get_all("set"):
        path, _, value = item.partition("=")
        if path not in known:
            st.warning(
                plain(f"The link changes {path[:60]}, which this workload does not have. It was left out."),
                icon=":material/link_off:",
            )
            continue
        try:
            changes[path] = _typed(known[path], value)
        except ValueError:
            refuse(
                BadInput(f"{path} = {value[:40]!r} in the link", _WANTED.get(known[path].kind, "text"), "correct it in the form")
            )
    return changes


_WANTED = {"int": "a whole number", "float": "a number", "flag": "true or false"}


def _typed(field: workloads.FormField, value: str) -> object:
    if value == "":
        return None
    if field.kind == "int":
        return int(value)
    if field.kind == "float":
        return float(value)
    if field.kind == "flag":
        if value not in ("true", "false"):
            raise ValueError(value)
        return value == "true"
    return value


def _inputs(fields: Sequence[workloads.FormField], keys: Mapping[str, str]) -> None:
    if fields:
        with st.grid(min_column_width=210, gap="small"):
            for field in fields:
                _input(field, keys[field.path])


def _input(field: workloads.FormField, key: str) -> None:
    label, note = field.label, field.help or None
    if field.kind == "int":
        st.number_input(label, value=field.value, step=1, min_value=field.minimum, max_value=field.maximum, key=key, help=note)
    elif field.kind == "float":
        value = None if field.value is None else float(field.value)
        st.number_input(
            label,
            value=value,
            format="%.6g",
            key=key,
            help=note,
            min_value=None if field.minimum is None else float(field.minimum),
            max_value=None if field.maximum is None else float(field.maximum),
        )
    elif field.kind == "choice":
        options = list(field.choices)
        st.selectbox(label, options, index=options.index(field.value) if field.value in options else None, key=key, help=note)
    elif field.kind == "flag":
        st.checkbox(label, value=bool(field.value), key=key, help=note)
    else:
        st.text_input(label, value="" if field.value is None else str(field.value), key=key, help=note, max_chars=200)


def _apply(keys: Mapping[str, str], original: Mapping[str, object]) -> None:
    changed: list[str] = []
    for path, key in keys.items():
        value = st.session_state.get(key)
        if value != original.get(path) and not (value in (None, "") and original.get(path) in (None, "")):
            changed.append(f"{path}={'' if value is None else str(value).lower() if isinstance(value, bool) else value}")
    link.put("set", changed)
