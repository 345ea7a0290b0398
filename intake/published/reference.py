"""Reference models of public benchmarks whose shapes a row does not give: counted here from their published definitions.

The figures are forward FLOPs (two a multiply-add), parameters and traffic of one sample. Convolution counts without an own
derivation are those that the reference implementations report, and are good to some 10 %: a fitted effect of each model's
class stands beside them.
"""

import re
from dataclasses import dataclass
from functools import cache

from core.sketch import Sketch

_CRITEO_TABLES, _CRITEO_WIDTH = 26, 128


def reference_of(model: str, phrase: str) -> Sketch | None:
    """Return the sketch of a reference model by its name, or None when it is none.

    Args:
        model: name of a row's model.
        phrase: its notes.
    """
    plain = model.lower()
    if "dlrm" in plain:
        return _recommender(model, "dcn" in plain or "cross" in phrase.lower())
    if "gat" in plain and "graph" in f"{plain} {phrase.lower()} graph":
        return _graph_attention(model)
    for pattern, gigaflop, megaparameters, megaelements, kernels in _CONVOLUTIONAL:
        if re.search(pattern, plain):
            return _convolutional(model, gigaflop, megaparameters, megaelements, kernels)
    if "gnmt" in plain:
        return _translation(model, "recurrent", 159e6, 50.0)
    return _translation(model, "encoder-decoder", 213e6, 55.0) if plain.startswith("transformer-big") else None


@dataclass(frozen=True, slots=True)
class Target:
    """How far a reference benchmark has to be trained.

    Args:
        least_samples: until the target of quality at a small batch.
        critical_batch: at which it takes twice as many.
        usual_batch: the largest one that is usual.
    """

    least_samples: float
    critical_batch: float
    usual_batch: float

    def samples(self, batch: float) -> float:
        """Return samples until the target of quality: least x (1 + batch / critical batch).

        Source: McCandlish et al., An Empirical Model of Large-Batch Training, arXiv:1812.06162, equation 2.11.
        """
        return self.least_samples * (1 + batch / self.critical_batch)


_TO_TARGET = ((r"^resnet-?50", Target(44.4e6, 47.6e3, 65536.0)), (r"^bert", Target(2.39e6, 14.6e3, 8192.0)))
"""Benchmarks whose convergence hardly varies but with the batch.

Source: mlcommons/logging reference convergence points of training v2.0, fitted by least squares of the ratio: ResNet-50 at 10
batches from 1,632 (35 epochs) to 65,536 (84 epochs), all within 6 %; BERT at 12 from 256 (2.6 million sequences) to 14,336
(4.8 million), all within 13 %. Other benchmarks vary too much for a time to a target to be told.
"""


def target_of(model: str) -> Target | None:
    """Return how far a reference benchmark has to be trained, None for any other model."""
    plain = model.lower()
    return next((target for pattern, target in _TO_TARGET if re.search(pattern, plain)), None)


_CONVOLUTIONAL = (
    (r"retinanet", 340.0, 38.0, 900.0, 300.0),
    (r"mask.?r-?cnn", 530.0, 44.0, 1500.0, 900.0),
    (r"ssd", 27.0, 20.0, 60.0, 130.0),
    (r"3d-?u-?net|unet3d", 1900.0, 31.0, 700.0, 90.0),
)
"""(name, GFLOP of a forward pass, million parameters, million elements moved by norms and activations, operations).

Sources: torchvision model cards (RetinaNet ResNeXt50 at 800 x 800 by the share of pixels of its 800 x 1333 figure; Mask R-CNN
ResNet-50 FPN, 134 GMAC at 800 x 1333 and the mask branch in training); mlcommons reference implementations of
single_stage_detector (SSD ResNet-34, 300 x 300) and of image_segmentation (3D U-Net, crops of 128^3, 947 GMAC).
"""


@cache
def _recommender(model: str, crossed: bool) -> Sketch:
    """DLRM on Criteo 1TB; with crosses, DCN-v2 on the multi-hot data. Sources: arXiv:1906.00091; mlcommons recommendation_v2."""
    features = _CRITEO_TABLES + 1
    bottom = 13 * 512 + 512 * 256 + 256 * 128
    if crossed:
        width, hot = features * _CRITEO_WIDTH, 214.0
        inner = 3 * 2 * width * 512
        top = width * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256
    else:
        hot = float(_CRITEO_TABLES)
        inner = features * features * _CRITEO_WIDTH
        pairs = features * (features - 1) // 2 + _CRITEO_WIDTH
        top = pairs * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256
    dense = bottom + top + (inner if crossed else 0)
    vector = 4.0 * (512 + 256 + 128 + 1024 * 2 + 512 + 256) + 6.0 * features * _CRITEO_WIDTH
    tables = 204e6 * _CRITEO_WIDTH * 0.9
    return Sketch(
        name=model,
        kind="recommender",
        linear_flop=2.0 * (bottom + top + inner),
        vector_elements=vector,
        lookup_elements=hot * _CRITEO_WIDTH,
        parameters=dense + tables,
        table_parameters=tables,
        layers=9.0,
        width=1024.0,
        kernels=60.0,
    )


@cache
def _graph_attention(model: str) -> Sketch:
    """R-GAT on IGBH: 3 layers of 512, fan-out 15-10-5 of 1,024 features. Source: mlcommons graph_neural_network reference."""
    near = 1 + 15 + 15 * 10 + 15 * 10 * 5
    products = near * 1024 * 512 + (1 + 15 + 150) * 512 * 512 + (1 + 15) * 512 * 512
    return Sketch(
        name=model,
        kind="graph",
        linear_flop=2.0 * products,
        vector_elements=8.0 * near * 512,
        lookup_elements=near * 1024.0,
        parameters=25e6,
        layers=3.0,
        width=512.0,
        kernels=300.0,
    )


@cache
def _convolutional(model: str, gigaflop: float, megaparameters: float, megaelements: float, kernels: float) -> Sketch:
    return Sketch(
        name=model,
        kind="vision",
        linear_flop=0.0,
        convolution_flop=gigaflop * 1e9,
        vector_elements=megaelements * 1e6,
        parameters=megaparameters * 1e6,
        layers=50.0,
        width=256.0,
        kernels=kernels,
    )


@cache
def _translation(model: str, kind: str, parameters: float, tokens: float) -> Sketch:
    """Translation of WMT sentences, some 25 to 30 tokens on either side. Source: mlcommons translation reference."""
    table = 33e3 * 1024
    return Sketch(
        name=model,
        kind=kind,
        linear_flop=2 * (parameters - table) * tokens / 2,
        head_flop=2 * table * tokens / 2,
        other_flop=0.0,
        vector_elements=12 * 16 * 1024 * tokens,
        logits=33e3 * tokens / 2,
        parameters=parameters,
        layers=12.0,
        width=1024.0,
        kernels=400.0,
    )
