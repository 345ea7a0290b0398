"""ResNet bottleneck: 1x1, 3x3 and 1x1 convolutions with batch norms and relu around a shortcut.

Source: He et al., arXiv:1512.03385, figure 5; the stride sits in the 3x3 convolution in v1.5, in the first 1x1 in v1.
"""

from intake.counting import Counts, Tally
from intake.sizes import BATCH, Sizes, flag, whole
from intake.wording import fault

SIZES = (
    BATCH,
    whole("height", "pixels from top to bottom of the input", high=10**5),
    whole("width", "pixels from left to right of the input", high=10**5),
    whole("in_channels", "channels of the input"),
    whole("mid_channels", "channels inside"),
    whole("out_channels", "channels of the output"),
    whole("stride", "step of the strided convolution", 1, high=99),
    flag("projection", "1: the shortcut is a 1x1 convolution with batch norm"),
    flag("stride_first", "1: the first 1x1 convolution strides, 0: the 3x3 does"),
    flag("conv_bias", "1: convolutions have biases"),
)


def check(where: str, sizes: Sizes) -> None:
    """Refuse a plain shortcut between different shapes.

    Raises:
        BadInput: the shapes differ.
    """
    same = sizes.whole("stride") == 1 and sizes.whole("in_channels") == sizes.whole("out_channels")
    if not same and not sizes.flag("projection"):
        raise fault(f"{where}.projection", 0, "1, since the shortcut has to change its shape", "set projection: 1")


def count(sizes: Sizes, dtype: str) -> Counts:
    """Count one bottleneck.

    Args:
        sizes: as in `SIZES`.
        dtype: compute dtype.
    """
    tally = Tally(dtype)
    image = (sizes.whole("batch"), sizes.whole("height"), sizes.whole("width"))
    inputs, mid, outputs = sizes.whole("in_channels"), sizes.whole("mid_channels"), sizes.whole("out_channels")
    stride, bias = sizes.whole("stride"), sizes.flag("conv_bias")
    first, second = (stride, 1) if sizes.flag("stride_first") else (1, stride)
    inner = _conv_norm(tally, image, (inputs, mid), 1, first, bias)
    tally.activate(_elements(inner, mid), "relu")
    inner = _conv_norm(tally, inner, (mid, mid), 3, second, bias)
    tally.activate(_elements(inner, mid), "relu")
    inner = _conv_norm(tally, inner, (mid, outputs), 1, 1, bias)
    if sizes.flag("projection"):
        already = tally.saved_bytes
        _conv_norm(tally, image, (inputs, outputs), 1, stride, bias)
        tally.saved_bytes = already
        tally.save(_elements(inner, outputs))
    tally.add(_elements(inner, outputs))
    tally.activate(_elements(inner, outputs), "relu")
    return tally.counts()


def _conv_norm(tally: Tally, image: tuple[int, int, int], channels: tuple[int, int], kernel: int, stride: int,
               bias: bool) -> tuple[int, int, int]:
    height, width = tally.conv(image, channels, kernel, stride, bias=bias)
    tally.norm(image[0] * height * width, channels[1], "batch")
    return image[0], height, width


def _elements(image: tuple[int, int, int], channels: int) -> int:
    return image[0] * image[1] * image[2] * channels
