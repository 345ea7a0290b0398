"""Writes docs/split-examples.md: worked examples of splits, each planned anew by the code when the page is written."""

from dataclasses import dataclass
from pathlib import Path

from advisor.split.judgement import value_of
from core import format as fmt
from core.split import Split, SplitOptions, pool_words
from services import split, workflows, workloads

NOTE = "<!-- Written by docs/generate.py: change the source, then run `.venv/bin/python -m docs.generate`. -->"
FOLDER = Path(__file__).resolve().parent / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example.

    Args:
        title: of its section.
        file: in `docs/examples/`.
        pools: none for a document that names its own.
        gbps, latency_ms: of the link; None leaves it to the catalog.
        mode: one of `core.split.MODES`; empty for all that the workload allows.
        published: what others report of the same kind of split, with its source.
    """

    title: str
    file: str
    pools: tuple[str, ...] = ()
    gbps: float | None = None
    latency_ms: float = 0.1
    mode: str = ""
    published: str = ""

    @property
    def command(self) -> str:
        """Return the command line that plans it."""
        parts = ["./tandem split", f"docs/examples/{self.file}", *(f"--pool {pool}" for pool in self.pools)]
        if self.gbps is not None:
            parts += [f"--link-gbps {self.gbps:g}", f"--link-latency-ms {self.latency_ms:g}"]
        if self.mode:
            parts.append(f"--mode {self.mode}")
        return " ".join(parts)

    def planned(self) -> Split:
        """Plan it."""
        path = str(FOLDER / self.file)
        if not self.pools:
            return workflows.plan_file(path)
        link = (None, None) if self.gbps is None else (self.gbps * 0.125e9, self.latency_ms / 1e3)
        return split.plan(workloads.read(path).document, SplitOptions(self.pools, self.mode, *link))


EXAMPLES = (
    Example(
        "Prepare on GPUs, train on TPUs", "prepare-and-train.yaml",
        published="Google's own page on when to use TPUs sends work with CUDA libraries to GPUs "
        "(cloud.google.com/tpu/docs/intro-to-tpu, 2026; rule R121): the GPUs write shards, the TPUs train.",
    ),
    Example(
        "Train on TPUs, infer on GPUs", "train-and-serve.yaml",
        published="MaxText converts its checkpoints to Hugging Face's layout, which vLLM loads on GPUs (MaxText, "
        "docs/guides/checkpointing_solutions/convert_checkpoint.md; rule R122).",
    ),
    Example(
        "Rollouts on GPUs, the learner on TPUs", "rl-8b.yaml", ("h100-sxm=8", "tpu-v6e=16"),
        published="SEED RL puts inference and learner on TPUs and environments on CPUs, 40 to 80 % cheaper (arXiv 1910.06591); "
        "rollouts in another engine than the trainer need importance weights (rule R119).",
    ),
    Example(
        "One batch over unlike pools", "shared-batch-8b.yaml", ("h100-sxm=8", "tpu-v6e=16"), mode="data",
        published="no collective spans NCCL and ICI (rule R104), so that gradients pass through the hosts; 140 GB of 70B's "
        "gradients take 5.6 s at 25 GB/s (rule R109).",
    ),
    Example(
        "Copies that meet seldom, over 10 Gbit/s", "diloco-8b.yaml", ("tpu-v5p=16", "h100-sxm=16"), 10.0, 30.0, "local",
        published="DiLoCo: 8 workers, 500 inner steps, 500 times less traffic at equal perplexity (arXiv 2311.08105); Decoupled "
        "DiLoCo mixed v5p and v6e (Google DeepMind, 2026-04-22; rule R112); nobody has published one over GPUs and TPUs "
        "(rule R113).",
    ),
    Example(
        "A model that fits on neither pool alone", "pipeline-8b.yaml", ("h100-sxm=1", "tpu-v5e=8"),
        published="1F1B keeps no more micro-batches in flight than there are stages behind (PipeDream, arXiv 1806.03377; "
        "Megatron-LM, arXiv 2104.04473).",
    ),
    Example(
        "Tables on one pool, the dense rest on another: a mistake here", "recommender.yaml", ("h100-sxm=1", "tpu-v6e=4"),
        mode="operators",
        published="tables of a recommender that do not fit beside its dense part are kept apart (DLRM, arXiv 1906.00091).",
    ),
    Example(
        "Requests over a mixed fleet", "serve-8b.yaml", ("l4=16", "h100-sxm=4", "tpu-v6e=4"),
        published="Mélange reports 9 to 77 % lower cost from mixing GPU types by request length (arXiv 2404.14527).",
    ),
    Example("A team's week", "team.yaml"),
)


def split_examples_page() -> str:
    """Return the page of worked examples."""
    lines = [
        "# Splits, worked out", "", NOTE, "",
        "Each of these is planned by the code from a document in [examples](examples/) when this page is written: change a",
        "document, or a fact of the catalog, and the figures change. Timelines and what the rules say come with the command; its",
        "flags are in the [guide](guide.md), documents of stages and portfolios in [workflows](workflows.md).", "",
    ]  # fmt: skip
    for example in EXAMPLES:
        lines += _section(example, example.planned())
    return "\n".join(lines)


def _section(example: Example, told: Split) -> list[str]:
    rows = [("together" if told.verdict == "hybrid" else "best split", told.seconds, told.cost_usd, "")]
    rows += [(pool_words(one.pool) + " alone", one.seconds, one.cost_usd, one.missing) for one in told.singles]
    table = ["| | time | USD | |", "|---|---|---|---|"]
    for name, seconds, usd, missing in rows:
        table.append(f"| {name} | {fmt.band(seconds)} | {fmt.usd(None if usd is None else usd.mid)} | {missing} |")
    shares = "; ".join(f"{pool_words(one.pool)}: {one.detail or fmt.percent(one.fraction)}" for one in told.shares)
    turns = [one.words for one in told.break_even]
    worth = value_of(told, told.objective)
    lines = [f"## {example.title}", "", "```", example.command, "```", "", f"**{told.sentence}** {told.why}", "", *table, ""]
    if worth is not None and shares:
        lines += [f"Shares: {shares}.", ""]
    if turns:
        lines += [f"Break-even: {'; '.join(turns)}.", ""]
    if example.published:
        lines += [f"Published: {example.published}", ""]
    return lines
