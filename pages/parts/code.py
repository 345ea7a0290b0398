"""A code base on the screen: the upload, the score of each target, what it says of a workload, and the findings."""

import streamlit as st

from core.errors import TandemError
from core.finding import TARGETS
from pages.parts import link
from pages.parts.tables import small_table
from pages.parts.text import plain
from services import code

SHOWN = 200
SEVERITY = {"blocks": ("Blocks", "red"), "work": ("To change", "orange"), "check": ("To look at", "gray")}


def code_field() -> code.CodeReport | None:
    """Draw the upload and return what was found; None before anything was handed in."""
    upload = st.file_uploader("Code: .py, .ipynb, or a zip of a folder", key="code_upload",
                              help="Nothing is kept: the findings live in this browser tab.")
    if upload is None:
        return None
    known = st.session_state.get("code_report")
    if known is not None and known[0] == upload.file_id:
        return known[1]
    try:
        with st.spinner(f"Reading {plain(upload.name, 60)} in the sandbox …", show_time=True):
            found = code.scan(upload.getvalue(), upload.name)
    except TandemError as error:
        st.error(plain(str(error), 600), icon=":material/error:")
        return None
    st.session_state["code_report"] = (upload.file_id, found)
    return found


def first_visit() -> None:
    """Draw what there is to expect before anything was handed in."""
    st.caption(f"Findings are told for {', '.join(code.TARGET_NAMES.values())}, each with file, line, what it means there, "
               "and the usual remedy. In a terminal, for a path:")
    st.code("./tandem inspect FOLDER --target torch-xla", language="bash")


def show_scores(report: code.CodeReport) -> None:
    """Draw the score of each target with the work it stands for."""
    files = ", ".join(f"{count:,} {how}" for how, count in report.scan.read)
    st.markdown(f"**{plain(report.name, 80)}** · {len(report.scan.findings):,} findings · {plain(files)}")
    small_table({
        "Target": [code.TARGET_NAMES[one.target] for one in report.scores],
        "Score": [f"**{one.score}**" for one in report.scores],
        "Work": [code.work_of(one) for one in report.scores],
        **{label: [str(sum(found.severity == severity for found in one.findings)) for one in report.scores]
           for severity, (label, _) in SEVERITY.items()},
    })
    st.caption("100: nothing was found. Hours are of a person who knows both sides, as Tandem's authors judge them; how the "
               "score comes about stands in the guide.")
    for note in report.scan.notes[:5]:
        st.caption(plain(note, 300))


def show_facts(report: code.CodeReport) -> None:
    """Draw what the code says of a workload, as the section of a workload file that it fills in."""
    told = code.existing_of(report)
    if not told:
        return
    with st.expander("What it says of a workload", icon=":material/fact_check:"):
        st.markdown("\n".join(f"- {plain(line, 300)}" for line in told.get("evidence", [])))
        st.caption("In a workload file, `existing: {code: PATH}` fills these in; what the file says itself stands.")


def show_findings(report: code.CodeReport) -> None:
    """Draw the findings on one target, worst first."""
    target = st.selectbox("Findings on", TARGETS, format_func=code.TARGET_NAMES.__getitem__, width=320,
                          key=link.follow("target", link.chosen("target", TARGETS, TARGETS[0])), on_change=link.write("target"))
    found = code.findings_on(report, target)
    if not found:
        st.success("Nothing in this code stands in the way there.", icon=":material/check_circle:")
        return
    small_table({
        "": [f":{SEVERITY[one.severity][1]}-badge[{SEVERITY[one.severity][0]}]" for one in found[:SHOWN]],
        "Where": [plain(f"{one.file}:{one.line}" if one.cell is None else f"{one.file}, cell {one.cell}:{one.line}", 90)
                  for one in found[:SHOWN]],
        "What": [plain(one.title, 160) for one in found[:SHOWN]],
        "What it means there": [plain(one.meaning, 300) for one in found[:SHOWN]],
        "Usual remedy": [plain(one.remedy, 300) for one in found[:SHOWN]],
    })
    if len(found) > SHOWN:
        st.caption(f"and {len(found) - SHOWN:,} more: ./tandem inspect PATH --target {target}")
