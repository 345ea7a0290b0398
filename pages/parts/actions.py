"""What can be done with a finished run: take it away, share it, run it again, note something, delete it."""

import streamlit as st

from core.errors import TandemError
from core.run import Run
from pages.parts import link
from pages.parts.text import refuse
from services import exports, runs

FORMATS = (
    ("html", "HTML report", ":material/web:", "text/html"),
    ("md", "Markdown", ":material/article:", "text/markdown"),
    ("json", "JSON, everything", ":material/data_object:", "application/json"),
    ("csv", "CSV, the candidates", ":material/table:", "text/csv"),
)


def run_actions(run: Run) -> None:
    """Draw the row of actions of one run."""
    with st.container(horizontal=True, gap="small"):
        if run.recommendation is not None:
            with st.popover("Export", icon=":material/download:", type="primary"):
                for kind, label, icon, mime in FORMATS:
                    _download(run.id, kind, label, icon, mime)
        with st.popover("Share", icon=":material/link:"):
            st.caption("Link to this run")
            st.code(link.page_address("run", id=run.id), language=None, wrap_lines=True)
            st.caption("The same from a terminal")
            st.code(
                f"./tandem show {run.id}\n./tandem report {run.id} --format html -o report.html", language="bash", wrap_lines=True
            )
            st.caption("The workload as a file")
            st.code(run.document, language="json", wrap_lines=True)
        with st.popover("Note", icon=":material/edit_note:"):
            _note_form(run)
        if st.button("Run again", icon=":material/replay:", help="Starts a new run with the same workload and options"):
            again(run.id)
        if st.button("Delete", icon=":material/delete:"):
            confirm_delete(run.id, run.workload.name)


def again(run_id: str) -> None:
    """Start the same run anew and go to it."""
    try:
        fresh = runs.rerun(run_id)
    except TandemError as error:
        refuse(error)
        return
    st.switch_page("pages/run.py", query_params={"id": fresh})


@st.dialog("Delete this run?", icon=":material/delete:")
def confirm_delete(run_id: str, name: str) -> None:
    """Ask before a run and its measurements go for good."""
    st.text(name)
    st.markdown("Its measurements, its advice and its note go for good. Exported files stay.")
    with st.container(horizontal=True):
        if st.button("Delete for good", type="primary", icon=":material/delete_forever:"):
            try:
                runs.delete(run_id)
            except TandemError as error:
                refuse(error)
            else:
                st.switch_page("pages/history.py")
        if st.button("Keep it"):
            st.rerun()


def _download(run_id: str, kind: str, label: str, icon: str, mime: str) -> None:
    st.download_button(
        label,
        data=lambda: exports.export(run_id, kind).data,
        file_name=f"tandem-{run_id}.{kind}",
        mime=mime,
        icon=icon,
        on_click="ignore",
        key=f"export:{kind}",
        width="stretch",
    )


def _note_form(run: Run) -> None:
    with st.form("note", border=False, width=420):
        st.text_area("Note, for whoever opens this run later", value=run.note, key=f"note:{run.id}", max_chars=2000)
        if st.form_submit_button("Save", type="primary"):
            try:
                runs.note(run.id, st.session_state[f"note:{run.id}"])
            except TandemError as error:
                refuse(error)
            else:
                st.rerun()
