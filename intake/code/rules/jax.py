"""Rules of JAX: what is legacy, experimental, bound to GPUs, or waits for the host."""

from functools import partial

from intake.code.rules.declare import JAX_DOCS, Rule, declared

_rule = partial(declared, "jax")
_CHANGES = "jax change log (recalled)"
_OTHER_TORCH = ("work", "is of JAX", "written anew")

RULES: tuple[Rule, ...] = (
    _rule("jax-pmap", "pmap and replicated state", f"{JAX_DOCS}; {_CHANGES}", (1, 8, 0.25, 1), {
        "J": ("check", "works, superseded by jit over a mesh; one copy of the weights on each device",
            "jit with shardings, shard_map"),
        "AN": ("check", "works, superseded by jit over a mesh", "jit with shardings, shard_map"),
        "TX": ("work", "is of JAX", "DDP or FSDP2"), "F": ("work", "is of JAX", "its own data parallelism"),
    }),
    _rule("jax-collective", "collectives over a named axis", JAX_DOCS, (0.5, 3, 0.1, 0.3), {"TX": ("work", "is of JAX",
        "torch.distributed"), "F": _OTHER_TORCH}),
    _rule("jax-distributed", "several hosts (jax.distributed)", JAX_DOCS, (0.5, 3, 0.1, 0.5), {"TX": ("work", "is of JAX",
        "init_process_group"), "F": _OTHER_TORCH}),
    _rule("jax-experimental", "jax.experimental", f"{JAX_DOCS}; {_CHANGES}", (0.5, 4, 0.1, 0.3), {
        "JAN": ("check", "may change or go between releases; pjit is jit since 0.4.7", "see where it went"),
        "TX": _OTHER_TORCH, "F": _OTHER_TORCH,
    }),
    _rule("jax-removed", "a name that JAX or Flax removed or deprecated", _CHANGES, (0.25, 2, 0.02, 0.2), {
        "JAN": ("work", "gone or going in current releases", "jax.tree.map, jax.process_count, .at[], optax and their like"),
        "TX": _OTHER_TORCH, "F": _OTHER_TORCH,
    }),
    _rule("jax-internal", "an internal module of JAX", _CHANGES, (0.5, 4, 0.1, 0.5), {
        "JAN": ("check", "changes without notice", "see what public name there is"), "TX": _OTHER_TORCH, "F": _OTHER_TORCH,
    }),
    _rule("jax-callback", "Python is called from compiled code", JAX_DOCS, (1, 6, 0.5, 2), {
        "J": ("work", "stops the TPU for a round trip to the host in each call", "do it outside, or in JAX"),
        "AN": ("check", "stops the device for a round trip", "do it outside, or in JAX"), "TX": _OTHER_TORCH, "F": _OTHER_TORCH,
    }, per_step=True),
    _rule("jax-debug", "printing from compiled code", JAX_DOCS, (0.1, 0.5, 0.02, 0.1), {
        "JAN": ("check", "a round trip to the host in each call", "leave it out of what is timed"), "TX": _OTHER_TORCH,
            "F": _OTHER_TORCH,
    }, per_step=True),
    _rule("jax-x64", "64-bit types are switched on", "jax-ml/jax issues 10158, 19769", (1, 8, 0.25, 1), {
        "J": ("work", "TPUs have no fp64 units: slow where it is emulated, refused elsewhere",
            "leave it off; fp64 on the CPU backend"),
        "AN": ("check", "full rate only on some chips", "see the chip's fp64 rate"), "F": ("check", "types default otherwise",
            "set dtypes"),
    }),
    _rule("jax-unrolled-loop", "a Python loop in a jitted function", JAX_DOCS, (0.5, 4, 0.25, 1), {
        "JAN": ("check", "is unrolled: compile time grows with its rounds", "jax.lax.scan or fori_loop"), "TX": _OTHER_TORCH,
            "F": _OTHER_TORCH,
    }),
    _rule("jax-gpu", "JAX is set up for GPUs", JAX_DOCS, (0.25, 1, 0.05, 0.25), {
        "J": ("check", "without effect, or fails, on a TPU", "leave it out; ask for the default backend"), "A": ("check",
            "ROCm answers to gpu", "test flags"),
        "TX": _OTHER_TORCH, "F": ("work", "is of JAX", "its own settings"),
    }),
)
