"""Rules of what a compiled program cannot do: read values on the host, branch on them, size tensors by them."""

from functools import partial

from intake.code.rules.declare import JAX_DOCS, TORCH_TPU, XLA_DOCS, XLA_TROUBLE, Rule, declared

_reads = partial(declared, "host reads", per_step=True)
_shapes = partial(declared, "dynamic shapes")
_SOURCE = f"{XLA_TROUBLE}; {JAX_DOCS}"
_EVERY = "keep it on the device and read it every 100 steps"
_GPU = ("check", "makes the host wait for the GPU; hidden queueing is lost", _EVERY)


def _read(jax: str) -> dict[str, tuple[str, str, str]]:
    return {
        "J": ("work", "fails within a jitted function; outside of it the TPU waits in every step", jax),
        "TX": ("work", "the program is cut there and the TPU waits in every step", _EVERY),
        "AN": _GPU, "F": ("check", "is written otherwise", "see what the other framework offers"),
    }


def _dynamic(jax: str, torch: str) -> dict[str, tuple[str, str, str]]:
    return {
        "J": ("work", "the size of the result depends on the data: refused under jit", jax),
        "T": ("work", "the size depends on the data: TorchTPU has only bounded dynamism (mark_dynamic)", torch),
        "X": ("work", "the size depends on the data: each new size is compiled again", torch),
        "AN": ("check", "makes the host wait; breaks graphs under torch.compile", torch),
        "F": ("work", "compiled frameworks refuse it", torch),
    }


_MASKS = "keep the size: torch.where, a multiplied mask, or padding with a count"
RULES: tuple[Rule, ...] = (
    _reads("host-item", "a value is read by the host (.item(), .tolist())", _SOURCE, (0.5, 2, 0.1, 0.5),
           _read("return it from the function, read it after several steps")),
    _reads("host-copy", "a tensor is copied to the host (.cpu(), .numpy(), device_get)", _SOURCE, (0.5, 2, 0.1, 0.5),
           _read("return it from the function, copy it after several steps")),
    _reads("host-float", "a tensor is made a Python number", _SOURCE, (0.5, 2, 0.1, 0.5),
           _read("use dtypes (astype) within, read it after several steps")),
    _reads("host-print", "a tensor is printed or logged", _SOURCE, (0.25, 1, 0.05, 0.25),
        _read("jax.debug.print within, or log every 100 steps")),
    _shapes("tensor-branch", "Python branches on a tensor", _SOURCE, (1, 4, 0.5, 2), {
        "J": ("work", "refused under jit", "jax.lax.cond or jnp.where"),
        "TX": ("work", "reads the value in every step and cuts the program", "torch.where, or a flag that is read seldom"),
        "AN": ("check", "makes the host wait; breaks graphs under torch.compile", "torch.where"),
        "F": ("work", "compiled frameworks refuse it", "use conditional operations"),
    }),
    _shapes("data-loop", "a loop runs until data says stop", _SOURCE, (2, 8, 1, 4), {
        "J": ("work", "refused under jit", "jax.lax.while_loop, or a fixed number of rounds with a mask"),
        "TX": ("work", "reads the value in each round and cuts the program", "a fixed number of rounds with a mask"),
        "AN": ("check", "makes the host wait in each round", "a fixed number of rounds with a mask"),
        "F": ("work", "compiled frameworks refuse it", "a fixed number of rounds with a mask"),
    }),
    _shapes("boolean-index", "an index of truth values", _SOURCE, (0.5, 3, 0.25, 1.5), _dynamic("jnp.where with a fixed size",
        _MASKS)),
    _shapes("boolean-mask", "boolean_mask", _SOURCE, (0.5, 3, 0.25, 1.5), _dynamic("jnp.where with a fixed size", _MASKS)),
    _shapes("nonzero", "positions of what is not zero", _SOURCE, (1, 4, 0.5, 2), _dynamic("jnp.nonzero(..., size=N)", _MASKS)),
    _shapes("where-one-argument", "where with a condition alone, which gives positions", _SOURCE, (1, 4, 0.5, 2),
            _dynamic("jnp.where(..., size=N)", _MASKS)),
    _shapes("unique", "unique values", _SOURCE, (1, 6, 0.5, 3), _dynamic("jnp.unique(..., size=N)",
        "do it on the host, or sort and mask")),
    _shapes("masked-select", "masked_select, bincount or alike", _SOURCE, (0.5, 3, 0.25, 1.5),
        _dynamic("jnp.where with a fixed size", _MASKS)),
    _shapes("data-shape", "a size that is read from a tensor", f"{_SOURCE}; {TORCH_TPU}", (1, 6, 0.5, 2),
            _dynamic("fix the size and mask", "pad to a few sizes")),
    _shapes("ragged-tensor", "ragged or nested tensors", _SOURCE, (2, 12, 1, 4), _dynamic("pad, and carry lengths",
        "pad, and carry lengths")),
    _shapes("packed-sequence", "packed sequences of many lengths", _SOURCE, (2, 8, 1, 3), _dynamic("pad, and mask by length",
        "pad, and mask by length")),
    _shapes("detection-op", "boxes: non-maximum suppression, region pooling, deformable convolution", f"{_SOURCE}; {XLA_DOCS}",
        (4, 24, 1, 8), {
        "J": ("work", "not part of JAX; the number of boxes depends on the data", "write it with a fixed number of boxes"),
        "TX": ("work", "falls back to the host or changes sizes", "fix the number of boxes, mask the rest"),
        "A": ("check", "torchvision has HIP kernels", "test it"), "F": ("work", "named and padded otherwise",
            "use its own operation"),
    }),
)
