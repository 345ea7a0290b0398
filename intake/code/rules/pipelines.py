"""Rules of input pipelines: PyTorch's data loader and tf.data."""

from functools import partial

from intake.code.rules.declare import JAX_DOCS, TF_DOCS, TORCH_DOCS, XLA_TROUBLE, Rule, declared

_rule = partial(declared, "input pipelines")
_FASTER = "a faster device waits longer for the host"

RULES: tuple[Rule, ...] = (
    _rule("torch-loader", "PyTorch's data loader", f"{TORCH_DOCS}; {JAX_DOCS}", (1, 4, 0.25, 1), {
        "J": ("check", "may stay: it yields numpy arrays when asked to; forked workers and JAX do not go together",
            "spawn workers, or Grain or tf.data"),
        "T": ("check", "moves batches by the host", "load ahead while the device works"),
        "X": ("work", "each batch is sent when it is used", "wrap it in MpDeviceLoader"),
        "F": ("work", "has its own pipeline", "yield numpy arrays, or use its pipeline"),
    }),
    _rule("loader-workers", "a data loader without workers", TORCH_DOCS, (0.1, 0.5, 0.05, 0.1), {
        "JTXANF": ("check", f"loads in the training process: {_FASTER}", "set num_workers to the cores that are free"),
    }),
    _rule("loader-pin-memory", "a data loader without pinned memory", TORCH_DOCS, (0.1, 0.25, 0.02, 0.05), {
        "AN": ("check", "copies to the GPU wait", "pin_memory=True and non_blocking=True"),
    }),
    _rule("loader-ragged-batch", "a last batch that is smaller", f"{XLA_TROUBLE}; {JAX_DOCS}", (0.25, 1, 0.05, 0.25), {
        "JTX": ("work", "a second shape: compiled again, and not divisible by the devices",
            "drop_last=True, or pad it with a mask"),
        "AN": ("check", "compiled again under torch.compile", "drop_last=True"), "F": ("check", "compiled again",
            "drop or pad it"),
    }),
    _rule("tf-data-map", "map without num_parallel_calls", TF_DOCS, (0.1, 0.25, 0.02, 0.05), {
        "JTXANF": ("check", f"one thread: {_FASTER}", "num_parallel_calls=tf.data.AUTOTUNE"),
    }),
    _rule("tf-data-batch", "batch without drop_remainder", TF_DOCS, (0.25, 1, 0.05, 0.25), {
        "JTX": ("work", "the size is not static: a TPU needs it", "drop_remainder=True, or pad the last batch"),
        "F": ("check", "a last batch of another size", "drop_remainder=True"),
    }),
    _rule("tf-data-generator", "a pipeline from a Python generator", TF_DOCS, (1, 6, 0.5, 2), {
        "J": ("check", f"one Python thread: {_FASTER}", "TFRecord or ArrayRecord files"),
        "TX": ("work", "runs Python on the host, not on TPU workers", "TFRecord files"), "ANF": ("check",
            f"one Python thread: {_FASTER}", "files read in parallel"),
    }),
    _rule("tf-data-prefetch", "a pipeline that is batched and never prefetched", TF_DOCS, (0.1, 0.25, 0.02, 0.05), {
        "JTXANF": ("check", "host and device take turns", "prefetch(tf.data.AUTOTUNE) at its end"),
    }),
)
