"""A model in the few numbers that its cost on an accelerator depends on, and how a published run was set up.

Counts are for one position (a token of a language model, a sample of any other model) of one forward pass, so that batch and
length can change without a new count. A sketch is made from the blocks of a workload or from the sizes that a published
measurement gives; both go through the same cost model.
"""

from dataclasses import dataclass

TRAINING, PREFILL, DECODE, SERVING, FORWARD = "training", "prefill", "decode", "serving", "forward"
REGIMES = (TRAINING, PREFILL, DECODE, SERVING, FORWARD)
"""What is run: an update step, the first token, later tokens, a mix of both at saturation, a plain forward pass."""
CLASSES = (
    "decoder",
    "mixture",
    "encoder",
    "encoder-decoder",
    "vision",
    "diffusion",
    "recommender",
    "graph",
    "recurrent",
    "other",
)


Windows = tuple[tuple[float, float], ...]
"""(part of the attention layers, positions that they look back at most); the rest look at everything."""


def reach(windows: Windows, context: float) -> float:
    """Return how many of the positions before it a position looks at, over all layers: what is kept of them, too.

    Args:
        windows: of the model. context: positions that there are.
    """
    return context - sum(part * max(0.0, context - width) for part, width in windows)


@dataclass(frozen=True, slots=True)
class Sketch:
    """A model, per position of one forward pass.

    Args:
        name: for people.
        kind: one of `CLASSES`.
        linear_flop: dense products outside experts and head; two FLOPs a multiply-add.
        expert_flop: products of the experts that a position is sent to.
        head_flop: the product with the vocabulary.
        attention_flop: scores and weighted sum for one position and one key, over all layers.
        convolution_flop, depthwise_flop, other_flop: convolutions; those with one channel a group; recurrent and library code.
        vector_elements: elements that element-wise operations and norms read and write.
        lookup_elements: elements fetched from embedding tables that are too large to be dense.
        logits: size of the vocabulary, 0 without one.
        parameters: all of them; `expert_parameters` and `table_parameters` are parts of it.
        expert_parameters: of experts. table_parameters: of embedding tables that no product touches.
        input_parameters: of the tables of a model's first layer that no product reads (token embeddings beside a head of its
            own); None where they were not counted, see `fetched_parameters`.
        layers, width, head_width, hidden: typical sizes; 0 where there is none.
        experts, experts_used: of a mixture; 0 without one.
        cached_elements: keys and values kept for one position, over all layers.
        saved_elements: activations kept for the backward pass, 2-byte elements; None where they are not known.
        kernels: operations of one forward pass. serial: small steps of it that wait for one another (recurrence).
        products: (columns, depth, part of the products' FLOPs) of the products, for the tiles that they fill.
        windows: how far its attention looks back.
        causal: whether a position sees only those before it.
        trained: part of the parameters that is trained.
        length: positions of one sample when it is fixed by the model (197 patches), else 0.
        by_token: whether positions are tokens though published runs of its kind are told by the sample.
    """

    name: str
    kind: str
    linear_flop: float
    expert_flop: float = 0.0
    head_flop: float = 0.0
    attention_flop: float = 0.0
    convolution_flop: float = 0.0
    depthwise_flop: float = 0.0
    other_flop: float = 0.0
    vector_elements: float = 0.0
    lookup_elements: float = 0.0
    logits: float = 0.0
    parameters: float = 0.0
    expert_parameters: float = 0.0
    table_parameters: float = 0.0
    input_parameters: float | None = None
    layers: float = 1.0
    width: float = 0.0
    head_width: float = 0.0
    hidden: float = 0.0
    experts: float = 0.0
    experts_used: float = 0.0
    cached_elements: float = 0.0
    saved_elements: float | None = None
    kernels: float = 0.0
    serial: float = 0.0
    products: tuple[tuple[float, float, float], ...] = ()
    windows: Windows = ()
    causal: bool = False
    trained: float = 1.0
    length: float = 0.0
    by_token: bool = False

    @property
    def matrix_flop(self) -> float:
        """Products and convolutions of one position, without attention."""
        return self.linear_flop + self.expert_flop + self.head_flop + self.convolution_flop

    @property
    def counts_samples(self) -> bool:
        """Whether a position of this model is a whole sample, and not a token."""
        return not self.by_token and self.kind in ("vision", "recommender", "graph", "other", "recurrent")

    @property
    def heads(self) -> int:
        """Attention heads of a layer; 1 without attention."""
        return int(self.attention_flop / 4 / max(1.0, self.head_width) / max(1.0, self.layers)) or 1

    @property
    def fetched_parameters(self) -> float:
        """Input tables of which a forward pass reads the rows of its positions and no more.

        Where nobody counted them: what no product of a language model reads, at most one table as large as the head. A head
        that shares the table leaves nothing of it, since its product reads all.
        """
        if self.input_parameters is not None:
            return self.input_parameters
        if self.kind not in ("decoder", "mixture", "encoder"):
            return 0.0
        unread = self.parameters - self.expert_parameters - self.table_parameters - (self.linear_flop + self.head_flop) / 2
        return min(max(0.0, unread), self.logits * self.width)

    def keys(self, length: float, cached: float = 0.0) -> float:
        """Return how many keys a position looks at on average.

        Args:
            length: positions in a row.
            cached: positions before them.
        """
        rest, found = 1.0, 0.0
        for part, window in self.windows:
            rest -= part
            found += part * _seen(length, min(window, length + cached), cached, self.causal)
        return found + max(0.0, rest) * _seen(length, length + cached, cached, self.causal)


def _seen(length: float, window: float, cached: float, causal: bool) -> float:
    """Return the average over positions of min(window, keys that there are)."""
    if not causal:
        return window
    first = max(0.0, min(length, window - cached))  # positions whose past is shorter than the window
    growing = first * (cached + first / 2)
    return (growing + (length - first) * window) / max(length, 1.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """How many ways each thing is divided; the product of data, tensor, pipeline and context is the number of chips.

    Args:
        data: replicas, sharded ones included. tensor, pipeline, context, expert: degrees.
        virtual: interleaved stages on a pipeline chip.
        sharded: chips that weights and states are spread over within `data` (1: plain data parallelism).
        micro_batch: samples of one replica that are in flight at once; None where it is not known.
        recompute: part of the forward pass that is done again in the backward pass, 0 to 1.
        islands: groups of chips that are joined by the data-centre network only.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    virtual: int = 1
    sharded: int = 1
    micro_batch: float | None = None
    recompute: float = 0.0
    islands: int = 1

    @property
    def words(self) -> str:
        """Return in one phrase what is divided how: `fsdp 8, tp 2, 1 at a time, remat`."""
        degrees = (
            ("fsdp" if self.sharded > 1 else "dp", self.data), ("tp", self.tensor), ("pp", self.pipeline), ("cp", self.context),
            ("ep", self.expert),
        )  # fmt: skip
        micro = "" if self.micro_batch is None else f"{self.micro_batch:g} at a time"
        words = (*(f"{name} {degree}" for name, degree in degrees if degree > 1), micro, "remat" if self.recompute else "")
        return ", ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class Setup:
    """One run of a sketch: what, on what, with what, divided how.

    Args:
        sketch: the model.
        regime: one of `REGIMES`.
        accelerator: key of the catalog.
        chips: how many; 0.5 for half a chip.
        stack: framework, with the library above it where one is known: `jax/maxtext`, `torch/nemo`, `tensorflow+xla`.
        dtype: of the products.
        batch: samples in one global step, or requests at once.
        length: positions of a sample; of the prompt for inference. output: tokens that follow.
        layout: how it is divided.
        year: when the software was current, 2024.5 is the middle of 2024.
        packed: part of the positions that are real; below 1 where padding is removed.
        cache: positions of a cache of fixed size that is read in full for each token; 0 where only what is there is read.
        low_rank: whether only adapters are trained.
        binned: whether samples are binned by length, so that less padding is computed; how much less is learned.
        assumed: what was filled in, one phrase each.
        guessed: `division` and `micro-batch` where `layout` has them by habit, since nobody said.
    """

    sketch: Sketch
    regime: str
    accelerator: str
    chips: float
    stack: str
    dtype: str
    batch: float
    length: float
    output: float = 0.0
    layout: Layout = Layout()
    year: float = 2025.0
    packed: float = 1.0
    cache: float = 0.0
    low_rank: bool = False
    assumed: tuple[str, ...] = ()
    binned: bool = False
    guessed: tuple[str, ...] = ()
