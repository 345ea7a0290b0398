"""What was read of a model file, before anything is advised: figures, optimizers, adapters, and what decides portability."""

import streamlit as st

from core import format as write
from core.picture import Picture
from core.workload import Workload
from pages.parts.tables import small_table
from pages.parts.text import plain
from services import models


def show_model(job: Workload, picture: Picture) -> None:
    """Draw what only a model that was read tells.

    Args:
        job: the workload that was made of it.
        picture: what was read.
    """
    with st.expander(f"What was read of the model ({plain(picture.format, 40)})", icon=":material/schema:", key="model",
                     bind="query-params") as opened:  # fmt: skip
        if not opened.open:
            return
        _figures(job, picture)
        layers, memory, moves = st.tabs(["Layers", "Memory and optimizers", "What decides portability"])
        with layers:
            _layers(job)
        with memory:
            _memory(job, picture)
        with moves:
            _portability(picture)


def _figures(job: Workload, picture: Picture) -> None:
    follows = ", ".join(name for name, _ in picture.symbols if name != "word") or "nothing: all sizes are fixed"
    backward = "derived from the forward pass" if picture.derived else "traced"
    told = [("parameters", picture.parameter_count), *models.facts(picture)]
    st.markdown(" · ".join(f"**{value:,}** {plain(name)}" for name, value in told))
    st.caption(f"Follows {follows}. Backward pass: {backward}. Read in a sandbox of level {models.sandbox_of(picture)}. "
               f"Forward {write.count(job.flop_forward, 'FLOP')}, backward {write.count(job.flop_backward, 'FLOP')}.")


def _layers(job: Workload) -> None:
    small_table({
        "Layer": [plain(one.name, 60) for one in job.blocks],
        "Times": [f"{one.repeats:,}" for one in job.blocks],
        "Parameters": [write.count(one.parameter_count) for one in job.blocks],
        "Forward": [write.count(one.flop_forward, "FLOP") for one in job.blocks],
        "Backward": [write.count(job.flop_backward_of(one), "FLOP") for one in job.blocks],
        "Kept for it": [write.memory(one.activation_bytes) for one in job.blocks],
    })
    st.caption("Parameters, FLOPs and bytes are of one layer.")


def _memory(job: Workload, picture: Picture) -> None:
    if job.peaks is not None:
        cache = f", **{write.memory(job.peaks.cache_bytes)}** of keys and values" if job.peaks.cache_bytes else ""
        st.markdown(f"Beside weights, gradients and optimizer: **{write.memory(job.peaks.forward_bytes)}** at the worst moment "
                    f"of inference, **{write.memory(job.peaks.training_bytes)}** of training{cache}.")
    _program(picture)
    found = models.adapter(picture)
    if found.parameter_count:
        trained, kept = write.count(found.parameter_count), write.memory(found.state_bytes)
        st.markdown(f"LoRA of rank {found.rank} on all matrices of the layers would train **{trained}** parameters and keep "
                    f"{kept} of AdamW.")
    states = models.optimizer_states(picture)
    small_table({
        "Optimizer": [one.name for one in states],
        "State": [write.memory(one.size_bytes) for one in states],
        "What it keeps": [plain(one.what) for one in states],
    })


def _program(picture: Picture) -> None:
    """Draw the memory of the program that the file holds, in each way in which it is told."""
    told = models.program_memory(picture)
    if not told:
        return
    sizes = [None if one.memory is None else (one.memory.arguments_bytes, one.memory.results_bytes, one.memory.temporary_bytes,
                                              one.memory.total_bytes) for one in told]  # fmt: skip
    heads = ("Arguments", "Results", "Beside them", "Together")
    small_table({
        "The program in the file, run as it is written": [plain(one.title, 80) for one in told],
        **{head: ["" if row is None else write.memory(row[at]) for row in sizes] for at, head in enumerate(heads)},
        "From": [plain(one.how) for one in told],
    })


def _portability(picture: Picture) -> None:
    rows = picture.operations
    if not rows:
        st.caption("Nothing in it moves badly: no dynamic shapes, no gathers, no sizes that tiles would pad.")
        return
    small_table({
        "What": [plain(one.mark.replace("_", " ")) for one in rows],
        "Which": [plain(one.detail) for one in rows],
        "Times": [f"{one.count:,}" for one in rows],
        "First in": [plain(one.where, 60) for one in rows],
        "In tiles": [f"{one.padded / one.extent:.1f} ×" if one.padded > one.extent > 0 else "" for one in rows],
        "Which means": [plain(models.mark_meaning(one.mark)) for one in rows],
    })
