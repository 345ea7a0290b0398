"""Rules of PyTorch/XLA, with what stands for each idiom in TorchTPU where that is documented."""

from functools import partial

from intake.code.rules.declare import TORCH_TPU, XLA_DOCS, Rule, declared

_rule = partial(declared, "torch_xla")
_SOURCE = f"{XLA_DOCS}; {TORCH_TPU}"
_FROZEN = ("check", "PyTorch/XLA is frozen at 2.9 (2025-11) and will be replaced", "plan for TorchTPU or JAX")
_UNDOCUMENTED = "no equivalent is documented for TorchTPU 0.2.0"


def _moved(meaning: str, torch_tpu: str, plain: str, jax: str) -> dict[str, tuple[str, str, str]]:
    """Return effects of an idiom of torch_xla.

    Args:
        meaning: what TorchTPU has in its place, or that nothing is documented.
        torch_tpu: remedy there.
        plain: remedy for PyTorch on GPUs.
        jax: remedy in JAX.
    """
    return {
        "T": ("work", meaning, torch_tpu), "X": _FROZEN, "J": ("work", "is of torch_xla", jax),
        "AN": ("work", "PyTorch/XLA has no GPU support since 2.8", plain), "F": ("work", "is of torch_xla", jax),
    }


RULES: tuple[Rule, ...] = (
    _rule("xla-device", "an XLA device is asked for", _SOURCE, (0.25, 0.5, 0.05, 0.1),
          _moved("TorchTPU's device is called tpu", 'torch.device("tpu")', 'torch.device("cuda")',
              "leave it out, or jax.devices()")),
    _rule("xla-step", "a step is marked (mark_step, optimizer_step, sync)", _SOURCE, (0.5, 2, 0.1, 0.25),
          _moved("TorchTPU has no lazy tensors: there is no step to mark", "leave mark_step out, write optimizer.step()",
                 "leave mark_step out, write optimizer.step()", "jit the whole step")),
    _rule("xla-loader", "a loader that sends batches ahead (ParallelLoader, MpDeviceLoader)", _SOURCE, (0.5, 2, 0.1, 0.5),
          _moved(_UNDOCUMENTED, "the plain data loader and .to(device)", "the plain data loader with pinned memory",
              "device_put of the next batch")),
    _rule("xla-spawn", "processes started by torch_xla (xmp.spawn, launch)", _SOURCE, (0.5, 2, 0.1, 0.5),
          _moved("TorchTPU uses PyTorch's own process groups", "torchrun and init_process_group", "torchrun",
              "the same program once a host")),
    _rule("xla-collective", "ranks and collectives of torch_xla", _SOURCE, (0.5, 3, 0.1, 0.3),
          _moved("TorchTPU uses torch.distributed", "dist.all_reduce, get_rank, get_world_size, barrier",
                 "torch.distributed", "jax.lax collectives, or shardings")),
    _rule("xla-fsdp", "torch_xla's FSDP", _SOURCE, (2, 8, 0.5, 2),
          _moved("FSDP2 is supported", "fully_shard", "fully_shard", "shardings of the parameters")),
    _rule("xla-spmd", "torch_xla's SPMD (mark_sharding)", _SOURCE, (2, 12, 0.25, 1),
          _moved("DTensor is supported", "distribute_tensor on a DeviceMesh", "DTensor", "jax.lax.with_sharding_constraint")),
    _rule("xla-environment", "an environment variable of PJRT or torch_xla", _SOURCE, (0.1, 0.5, 0.02, 0.1),
          _moved(_UNDOCUMENTED, "leave it out", "leave it out", "JAX_PLATFORMS chooses the platform")),
    _rule("xla-api", "another part of torch_xla", _SOURCE, (0.5, 3, 0.1, 0.5),
          _moved(_UNDOCUMENTED, "find out what it is for", "leave it out", "find out what it is for")),
)
