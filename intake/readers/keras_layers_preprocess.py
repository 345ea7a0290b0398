"""Keras's preprocessing layers: text and categories into numbers, images resized and varied, sound into spectra.

Vocabulary files and addresses that a config names are never opened: only counts that stand in the config are used.
"""

from collections.abc import Sequence

from core.graph import Shape
from core.symbols import LENGTH, Extent, product
from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, flat, one_input
from intake.readers.keras_layers_conv import add_conv, join_shape, split_shape, windows
from intake.readers.keras_layers_shape import RESIZE_FLOP
from intake.readers.plain_json import sequence


def _encoded(trace: Trace, layer: Layer, source: Ref, depth: int, mode: str) -> Ref:
    """Add what turns numbers into rows of a depth."""
    shape = trace.shape(source)
    if mode == "int":
        return trace.elementwise(layer, layer.kind, (source,), 1, shape, "int64")
    if mode == "one_hot" and (len(shape) < 2 or shape[-1] != 1):
        return trace.elementwise(layer, layer.kind, (source,), 1, (*shape, depth))
    result = trace.value(layer, (*shape[:-1], depth))
    kind = "elementwise" if mode == "one_hot" else "scatter"
    dims: tuple[Extent, ...] = (product((*shape[:-1], depth)), 1, 1) if mode == "one_hot" else (product(shape), 1)
    trace.node(layer, layer.kind, kind, dims, (source,), (result,), () if mode == "one_hot" else ("scatter",))
    return result


def _vocabulary(layer: Layer, key: str = "max_tokens") -> int:
    words = layer.config.get("vocabulary")
    for value in (layer.config.get(key), layer.config.get("vocabulary_size"), len(sequence(words)) or None):
        if isinstance(value, int) and value > 0:
            return value
    raise layer.fault(key, "the number of tokens: a vocabulary file is not opened")


def lookup(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`StringLookup`, `IntegerLookup`: a table of tokens; inverted, tokens from numbers."""
    source, mode = one_input(trace, layer, call), layer.text("output_mode", "int")
    if layer.flag("invert"):
        return trace.elementwise(
            layer, layer.kind, (source,), 0, trace.shape(source), "string" if layer.kind == "StringLookup" else "int64"
        )
    return _encoded(trace, layer, source, 1 if mode == "int" else _vocabulary(layer), mode)


def vectorize(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`TextVectorization`: a text into a row of token numbers, or of counts."""
    source, mode = one_input(trace, layer, call), layer.text("output_mode", "int")
    shape, length = trace.shape(source), layer.config.get("output_sequence_length")
    words = layer.whole("output_sequence_length") if length is not None else trace.extent(LENGTH)
    dynamic = () if length is not None else ("dynamic_shape",)
    if mode == "int":
        return trace.elementwise(layer, layer.kind, (source,), 1, (shape[0] if shape else 1, words), "int64", dynamic)
    tokens = trace.elementwise(layer, f"{layer.kind}.split", (source,), 1, (shape[0] if shape else 1, words), "int64", dynamic)
    return _encoded(trace, layer, tokens, _vocabulary(layer), mode)


def encode(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`CategoryEncoding`, `Hashing` and `Discretization`: numbers or texts into bins."""
    source, mode = (
        one_input(trace, layer, call),
        layer.text("output_mode", "multi_hot" if layer.kind == "CategoryEncoding" else "int"),
    )
    bounds = sequence(layer.config.get("bin_boundaries"))
    depth = (
        len(bounds) + 1
        if bounds
        else 1
        if mode == "int"
        else layer.whole("num_tokens" if layer.kind == "CategoryEncoding" else "num_bins")
    )
    return _encoded(trace, layer, source, depth, mode)


def crossed(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`HashedCrossing`: two columns hashed together."""
    source, mode = one_input(trace, layer, call), layer.text("output_mode", "int")
    return _encoded(trace, layer, source, layer.whole("num_bins"), mode)


def rescale(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Rescaling`: times a scale, plus an offset."""
    return trace.elementwise(layer, layer.kind, (one_input(trace, layer, call),), 2)


def resize(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`Resizing`, `CenterCrop`, `RandomCrop`: images of a size that is given."""
    source = one_input(trace, layer, call, 3)
    shape, height, width = trace.shape(source), layer.whole("height"), layer.whole("width")
    first = layer.text("data_format", "channels_last") == "channels_first"
    found: Shape = (*shape[:-2], height, width) if first else (*shape[:-3], height, width, shape[-1])
    flop = RESIZE_FLOP.get(layer.text("interpolation", "bilinear"), 31) if layer.kind == "Resizing" else 0
    return trace.elementwise(layer, layer.kind, (source,), flop, found)


def vary(trace: Trace, layer: Layer, call: Call) -> object:
    """Random and colour changes of images: the same shape; nothing but training has the random ones."""
    found = flat(call.args) or call.every()
    one_input(trace, layer, call)
    marks = ("random",) if layer.kind.startswith("Random") or layer.kind in ("MixUp", "CutMix", "AugMix", "RandAugment") else ()
    return trace.elementwise(layer, layer.kind, (found[0],), 8, trace.shape(found[0]), "", marks)


def stft(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`STFTSpectrogram`: two convolutions with fixed waves."""
    source = one_input(trace, layer, call, 3)
    batch, spatial, channels = split_shape(layer, trace.shape(source))
    frame, mode = layer.whole("frame_length", 256), layer.text("mode", "log")
    length = layer.whole("fft_length", 1 << (frame - 1).bit_length())
    bins = length // 2 + 1
    step = layer.whole("frame_step", max(frame // 2, 1))
    found = (windows(trace, spatial[0], frame, step, layer.text("padding", "valid")),)
    if len(spatial) != 1 or not isinstance(channels, int):
        raise layer.fault("frame_length", "an input of three axes with known channels")
    parts: list[Ref] = []
    for part in ("real", "imag"):
        if mode != {"real": "imag", "imag": "real"}[part]:
            kernel = trace.weight(layer, f"{part}_kernel", (frame, 1, bins))
            sizes = (channels, bins * channels)
            parts.append(
                add_conv(trace, layer, f"{layer.kind}.{part}", (source, kernel), spatial, found, sizes, (frame,), channels, batch)
            )
    deep = bins * channels * (2 if mode == "stft" else 1)
    result = trace.elementwise(
        layer,
        f"{layer.kind}.{mode}"[:60],
        parts,
        0 if mode in ("real", "imag", "stft") else 7,
        join_shape(layer, batch, found, deep),
    )
    if not layer.flag("expand_dims"):
        return result
    first = layer.first(3)
    wide: Sequence[Extent] = (
        (channels, found[0], trace.floor(deep, channels)) if first else (found[0], trace.floor(deep, channels), channels)
    )
    return trace.view(layer, f"{layer.kind}.expand", result, (batch, *wide))


def mel(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`MelSpectrogram`: a Fourier transform of each frame, then a product with the mel filters."""
    source = one_input(trace, layer, call, 1)
    shape = trace.shape(source)
    frame, step, bins = layer.whole("fft_length", 2048), layer.whole("sequence_stride", 512), layer.whole("num_mel_bins", 128)
    frames = trace.floor(shape[-1] + (step + 1), step)
    rows = product(shape[:-1]) * frames
    spectrum = trace.value(layer, (*shape[:-1], frames, frame // 2 + 1))
    trace.node(layer, f"{layer.kind}.fft", "fft", (rows, frame), (source,), (spectrum,), ("fft",))
    found = trace.matmul(layer, f"{layer.kind}.mel", (spectrum,), (1, rows, bins, frame // 2 + 1), (*shape[:-1], bins, frames))
    return trace.elementwise(layer, f"{layer.kind}.log", (found,), 6)


_VARIED = (
    "RandomBrightness", "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomElasticTransform",
    "RandomErasing", "RandomFlip", "RandomGaussianBlur", "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPerspective",
    "RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear", "RandomTranslation",
    "RandomZoom", "RandomHeight", "RandomWidth", "AugMix", "AutoContrast", "CutMix", "MixUp", "RandAugment", "Solarization",
    "Equalization", "ContrastLimitedAdaptiveHistogramEqualization",
)  # fmt: skip
TABLE: Registry = {
    "StringLookup": lookup, "IntegerLookup": lookup, "TextVectorization": vectorize, "CategoryEncoding": encode,
    "Hashing": encode, "Discretization": encode, "HashedCrossing": crossed, "Rescaling": rescale, "Resizing": resize,
    "CenterCrop": resize, "RandomCrop": resize, "STFTSpectrogram": stft, "MelSpectrogram": mel, **dict.fromkeys(_VARIED, vary),
}  # fmt: skip
