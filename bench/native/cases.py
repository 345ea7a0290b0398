"""The workloads of the bench: one frozen `Case` each, with sizes that every framework builds the same way.

Why these sizes: a step should take 60 to 600 ms on two cores at some 150 GFLOP/s, so that dispatch cost counts but does
not rule, and the models must be whole: token tables, heads, losses and optimizers are part of each.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

RUNTIMES = (
    "jax", "torch-eager", "torch-compile", "tf-graph", "tf-xla", "keras-jax", "keras-tensorflow", "keras-torch",
    "torch-xla", "mxnet",
)
"""Runtimes that the natives are written for, in the order in which they are measured."""


LEARNING_RATES = {"adamw": 1e-5, "adam": 1e-5, "momentum": 1e-5, "sgd": 1e-3}
"""Small: a batch that is repeated must not be learnt by heart, since the denormal numbers that follow slow some runtimes."""


@dataclass(frozen=True, slots=True)
class Text:
    """A transformer over tokens; `kv_heads` and `hidden` as in the family's reference configuration."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    length: int
    positions: int = 0


@dataclass(frozen=True, slots=True)
class Image:
    """A convolutional network with a fixed reference architecture; only its input and output are free."""

    image: int
    classes: int


@dataclass(frozen=True, slots=True)
class Vision:
    """A vision transformer."""

    layers: int
    width: int
    heads: int
    hidden: int
    image: int
    patch: int
    classes: int


@dataclass(frozen=True, slots=True)
class Recurrent:
    """A language model of LSTM layers, all of one width, with an output layer of its own."""

    layers: int
    width: int
    vocabulary: int
    length: int


@dataclass(frozen=True, slots=True)
class Recommender:
    """DLRM: dense tower, `tables` embedding bags, pairwise dot products, top tower of which the last layer is one logit."""

    bottom: tuple[int, ...]
    tables: int
    rows: int
    width: int
    per_bag: int
    top: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dense:
    """A multilayer perceptron: widths from input to classes, relu between."""

    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Segmentation:
    """U-Net with four poolings: `base` channels at full resolution."""

    image: int
    base: int
    classes: int


Shape: TypeAlias = Text | Image | Vision | Recurrent | Recommender | Dense | Segmentation


@dataclass(frozen=True, slots=True)
class Case:
    """One workload of the bench.

    Args:
        name: what it is called in the table and on the command line.
        family: which builder makes it: gpt2, bert, llama, resnet50, mobilenet_v2, vit, lstm, dlrm, mlp or unet.
        task: `train` or `infer`.
        batch: samples in one step.
        shape: its sizes.
        optimizer: `adamw`, `adam`, `momentum`, `sgd`, or `none` for inference.
    """

    name: str
    family: str
    task: str
    batch: int
    shape: Shape
    optimizer: str

    @property
    def trains(self) -> bool:
        """Whether a step has a backward pass and an update."""
        return self.task == "train"


_GPT2 = Text(layers=12, width=768, heads=12, kv_heads=12, hidden=3072, vocabulary=50257, length=128, positions=1024)
_BERT = Text(layers=12, width=768, heads=12, kv_heads=12, hidden=3072, vocabulary=30522, length=128, positions=512)
_LLAMA = Text(layers=6, width=512, heads=8, kv_heads=4, hidden=1408, vocabulary=32000, length=256)

CASES: tuple[Case, ...] = (
    Case("gpt2-train", "gpt2", "train", 1, replace(_GPT2, layers=6), "adamw"),
    Case("mlp-train", "mlp", "train", 512, Dense((784, 2048, 2048, 2048, 10)), "adam"),
    Case("lstm-train", "lstm", "train", 16, Recurrent(layers=2, width=650, vocabulary=10000, length=32), "sgd"),
    Case("dlrm-train", "dlrm", "train", 2048, Recommender((13, 512, 256, 32), 26, 20000, 32, 1, (512, 256, 1)), "sgd"),
    Case("bert-train", "bert", "train", 2, replace(_BERT, layers=6, length=64), "adamw"),
    Case("llama-train", "llama", "train", 1, _LLAMA, "adamw"),
    Case("vit-infer", "vit", "infer", 2, Vision(12, 768, 12, 3072, 224, 16, 1000), "none"),
    Case("gpt2-infer", "gpt2", "infer", 1, replace(_GPT2, length=256), "none"),
    Case("bert-infer", "bert", "infer", 2, _BERT, "none"),
    Case("resnet50-infer", "resnet50", "infer", 4, Image(image=224, classes=1000), "none"),
    Case("resnet50-train", "resnet50", "train", 4, Image(image=128, classes=1000), "momentum"),
    Case("unet-train", "unet", "train", 1, Segmentation(image=96, base=64, classes=2), "adam"),
    Case("mobilenet-v2-train", "mobilenet_v2", "train", 8, Image(image=128, classes=1000), "momentum"),
)
"""In the order in which they are measured: when time runs out, the last are left."""


def case(name: str) -> Case:
    """Return one case by name.

    Raises:
        KeyError: there is none of that name.
    """
    for one in CASES:
        if one.name == name:
            return one
    raise KeyError(f"got case {name!r}; expected one of {', '.join(one.name for one in CASES)}")


def tiny(one: Case) -> Case:
    """Return the same case with sizes that run in a moment: for tests of the natives, never for figures."""
    match one.shape:
        case Text() as shape:
            small: Shape = replace(shape, layers=1, width=32, heads=4, kv_heads=shape.kv_heads * 4 // shape.heads, hidden=64,
                                   vocabulary=100, length=8, positions=min(shape.positions, 16))
        case Image():
            small = Image(image=64, classes=10)
        case Vision():
            small = Vision(1, 32, 4, 64, 32, 16, 10)
        case Recurrent():
            small = Recurrent(layers=2, width=16, vocabulary=100, length=4)
        case Recommender() as shape:
            small = Recommender((13, 16, 8), 3, 50, 8, shape.per_bag, (16, 1))
        case Dense():
            small = Dense((8, 16, 4))
        case Segmentation():
            small = Segmentation(image=16, base=4, classes=2)
    return replace(one, batch=2, shape=small)


@dataclass(frozen=True, slots=True)
class Batch:
    """Random inputs of a case and, for training, its targets; images are batch x height x width x channels."""

    inputs: "tuple[np.ndarray, ...]"
    targets: "np.ndarray"


def random_batch(one: Case, seed: int = 0) -> Batch:
    """Return normal images and features, uniform tokens and classes; integers are int32, the rest float32."""
    import numpy as np

    random = np.random.default_rng(seed)

    def normal(*sizes: int) -> "np.ndarray":
        return random.standard_normal(sizes, dtype=np.float32)

    def integers(below: int, *sizes: int) -> "np.ndarray":
        return random.integers(0, below, sizes, dtype=np.int32)

    n = one.batch
    match one.shape:
        case Text() | Recurrent() as s:
            return Batch((integers(s.vocabulary, n, s.length),), integers(s.vocabulary, n, s.length))
        case Image() | Vision() as s:
            return Batch((normal(n, s.image, s.image, 3),), integers(s.classes, n))
        case Recommender() as s:
            ids = integers(s.rows, n, s.tables, s.per_bag)
            return Batch((normal(n, s.bottom[0]), ids), integers(2, n).astype(np.float32))
        case Dense() as s:
            return Batch((normal(n, s.widths[0]),), integers(s.widths[-1], n))
        case Segmentation() as s:
            return Batch((normal(n, s.image, s.image, 3),), integers(s.classes, n, s.image, s.image))
