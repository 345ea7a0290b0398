"""Rules of work over several devices: process groups, wrappers, launchers."""

from functools import partial

from intake.code.rules.declare import HIP, JAX_DOCS, TORCH_DOCS, TORCH_TPU, XLA_DOCS, Rule, declared

_rule = partial(declared, "distributed")
_SHARDING = "describe a mesh and shardings; the compiler adds the collectives"
_SOURCE = f"{TORCH_TPU}; {XLA_DOCS}; {JAX_DOCS}"
_OTHER = ("work", "written anew with the other framework's means", "use its data-parallel strategy or sharding")

RULES: tuple[Rule, ...] = (
    _rule("nccl", "the NCCL backend is named", f"{_SOURCE}; {HIP}", (0.25, 1, 0.05, 0.1), {
        "J": ("work", "there is no NCCL on TPU: collectives are part of the program", _SHARDING),
        "T": ("work", "there is no NCCL on TPU", "take the backend that TorchTPU registers, from one setting"),
        "X": ("work", "there is no NCCL on TPU", 'init_process_group("xla", init_method="xla://")'),
        "A": ("none", "RCCL answers to the name nccl", ""),
        "F": ("work", "other frameworks choose it themselves", "leave it out"),
    }),
    _rule("torch-distributed", "torch.distributed: process group, ranks, collectives, samplers", _SOURCE, (2, 8, 0.1, 0.5), {
        "J": ("work", "JAX has one program over all devices in place of ranks", f"jax.distributed.initialize, then {_SHARDING}"),
        "T": ("check", "DDP, FSDP2, DTensor and collectives are supported (beta)", "test each collective that is used"),
        "X": ("check", "works through the xla backend, which is frozen", "test it, or plan for TorchTPU"),
        "A": ("none", "RCCL stands in", ""), "F": _OTHER,
    }),
    _rule("torch-p2p", "point-to-point sends and pipelines", TORCH_TPU, (8, 40, 2, 8), {
        "J": ("work", "written as shifts within the program", "jax.lax.ppermute, or pipeline stages by shard_map"),
        "T": ("blocks", "send and recv raise NotImplementedError in TorchTPU 0.2.0",
            "use FSDP2 or tensor parallelism in place of a pipeline"),
        "X": ("work", "only collective_permute is there", "rewrite with torch_xla's collective_permute"),
        "A": ("none", "RCCL stands in", ""), "F": _OTHER,
    }),
    _rule("torch-subgroup", "process groups of some ranks", TORCH_TPU, (2, 8, 0.5, 2), {
        "J": ("work", "axes of the mesh stand in for groups", _SHARDING),
        "T": ("work", "TorchComms in TorchTPU 0.2.0 refuses a split by explicit ranks",
            "build a DeviceMesh and take groups from its axes"),
        "X": ("work", "groups are lists of replicas", "pass groups= to the collectives of torch_xla"),
        "A": ("none", "RCCL stands in", ""), "F": _OTHER,
    }),
    _rule("torch-data-parallel", "torch.nn.DataParallel", f"{TORCH_DOCS}; {_SOURCE}", (2, 6, 0.5, 1), {
        "J": ("work", "one process sees all devices already", "shard the batch over the mesh"),
        "T": ("work", "one process drives several GPUs by threads: nothing like it is documented for TorchTPU 0.2.0",
            "use DDP or FSDP2"),
        "X": ("work", "does not run on XLA devices", "one process a device: torch_xla.launch"),
        "A": ("check", "runs; DDP is faster everywhere", "use DDP"), "N": ("check", "runs; DDP is faster everywhere", "use DDP"),
            "F": _OTHER,
    }),
    _rule("torch-ddp", "DistributedDataParallel", _SOURCE, (1, 4, 0.25, 1), {
        "J": ("work", "data parallelism is a sharding of the batch", _SHARDING), "T": ("check", "supported (beta)",
            "leave device_ids out"),
        "X": ("check", "works with the xla backend; optimizer_step is the usual way", "leave device_ids out"),
        "A": ("none", "RCCL stands in", ""), "F": _OTHER,
    }),
    _rule("torch-fsdp", "FullyShardedDataParallel", _SOURCE, (2, 8, 0.5, 2), {
        "J": ("work", "a sharding of the parameters does the same", _SHARDING),
        "T": ("work", "FSDP2 (fully_shard) is supported, FSDP1 is not named", "move to fully_shard"),
        "X": ("work", "has its own wrapper", "XlaFullyShardedDataParallel or SPMD"), "A": ("none", "RCCL stands in", ""),
            "F": _OTHER,
    }),
    _rule("torch-rpc", "torch.distributed.rpc", TORCH_DOCS, (8, 40, 2, 8), {
        "J": ("work", "JAX has no remote calls", "move them to Ray or gRPC"),
        "TX": ("work", "tensors of TPUs are not sent by TensorPipe; nothing is documented", "send host tensors, or use Ray"),
        "A": ("check", "runs; not tested by AMD as far as documented", "test it"), "F": _OTHER,
    }),
    _rule("torch-spawn", "processes are spawned one a device", _SOURCE, (0.5, 2, 0.25, 0.5), {
        "J": ("work", "one process a host sees all its devices", "leave it out"),
        "T": ("check", "one process at a time owns a chip", "start one process a device by torchrun"),
        "X": ("work", "workers are started by torch_xla", "torch_xla.launch"), "F": _OTHER,
    }),
    _rule("launcher", "a launcher of several processes", _SOURCE, (0.5, 2, 0.1, 0.5), {
        "J": ("work", "start the same program once a host", "jax.distributed.initialize finds the hosts of a slice"),
        "T": ("check", "torchrun starts one process a device", "see that hosts of a slice find each other"),
        "X": ("work", "PJRT starts its own workers", "start the script once a host"), "F": _OTHER,
    }),
)
