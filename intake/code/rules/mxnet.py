"""Rules of MXNet and Gluon, each with what stands for it in JAX and in PyTorch."""

from functools import partial

from intake.code.rules.declare import MXNET, Rule, declared

_rule = partial(declared, "mxnet")


def _moved(jax: str, torch: str) -> dict[str, tuple[str, str, str]]:
    """Return effects of an idiom: MXNet is retired, so that every target but NVIDIA's needs another framework."""
    return {
        "J": ("work", "MXNet has no TPU backend", jax), "TX": ("work", "MXNet has no TPU backend", torch),
        "A": ("work", "MXNet has no AMD build", torch), "F": ("work", "has to be written anew", f"JAX: {jax}; PyTorch: {torch}"),
        "N": ("check", "retired in 2023: CUDA 11.2 and numpy below 2 at most", "plan to move"),
    }


RULES: tuple[Rule, ...] = (
    _rule("mx-gluon", "a Gluon block, layer or loss", MXNET, (2, 8, 0.25, 2), _moved("a Flax or Keras 3 module",
        "torch.nn.Module and its layers")),
    _rule("mx-hybridize", "hybridize", MXNET, (0.25, 1, 0.05, 0.25), _moved("jax.jit of the step", "torch.compile")),
    _rule("mx-autograd", "autograd.record, backward, attach_grad", MXNET, (1, 3, 0.25, 0.75),
          _moved("jax.value_and_grad of a pure loss function",
              "gradients are recorded by default; loss.backward(), torch.no_grad() for pause")),
    _rule("mx-trainer", "gluon.Trainer", MXNET, (0.5, 2, 0.25, 1),
          _moved("an optax optimizer; divide by the batch where step(batch_size) did",
              "torch.optim; divide the loss by the batch where step(batch_size) did")),
    _rule("mx-context", "a context: mx.gpu(), as_in_context", MXNET, (0.25, 1, 0.02, 0.1),
          _moved("leave it out, or shardings", "device= and .to(device)")),
    _rule("mx-ndarray", "operations of mx.nd or mx.np", MXNET, (1, 4, 0.05, 0.3),
          _moved("jax.numpy; names of mx.np are nearly the same, those of mx.nd are not",
              "torch; axis is dim, mx.nd names differ")),
    _rule("mx-symbol", "symbols and the Module API", MXNET, (4, 24, 0.1, 0.6), _moved("write the network as functions",
        "write the network as a module")),
    _rule("mx-data", "iterators, RecordIO, Gluon data", MXNET, (1, 6, 0.25, 1), _moved("Grain or tf.data",
        "torch.utils.data; RecordIO has to be converted")),
    _rule("mx-kvstore", "a KVStore", MXNET, (1, 6, 0.25, 1), _moved("shard the batch over the mesh",
        "DDP or FSDP2 for device and dist_sync")),
    _rule("mx-amp", "mixed precision of MXNet", MXNET, (0.5, 2, 0.1, 0.3), _moved("bf16 dtypes, no loss scaling",
        "torch.autocast, bf16")),
    _rule("mx-api", "another part of MXNet", MXNET, (0.5, 3, 0.05, 0.3), _moved("find its successor", "find its successor")),
)
