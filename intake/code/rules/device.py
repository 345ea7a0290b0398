"""Rules of devices: CUDA calls, device names and everything below `torch.cuda`."""

from functools import partial

from intake.code.rules.declare import HIP, TORCH_DOCS, TORCH_TPU, Rule, declared

_rule = partial(declared, "device")
_ROCM = ("none", "ROCm builds of PyTorch answer to the name cuda", "")
_SOURCE = f"{TORCH_TPU}; {HIP}"


def _moved(jax: str, torch: str, xla: str) -> dict[str, tuple[str, str, str]]:
    """Return effects of code that names CUDA where another device would be named."""
    return {
        "J": ("work", "JAX places arrays by itself: there is no CUDA device on a TPU", jax),
        "T": ("work", "TorchTPU's device is called tpu", torch),
        "X": ("work", "PyTorch/XLA's device comes from torch_xla", xla),
        "A": _ROCM,
        "F": ("work", "other frameworks name and place devices in their own way",
            "take the place from one setting of the program"),
    }


RULES: tuple[Rule, ...] = (
    _rule("cuda-call", "a tensor or module is moved by .cuda()", _SOURCE, (0.25, 0.5, 0.02, 0.08),
          _moved("leave it out, or jax.device_put with a sharding", 'write .to(device) with device = "tpu"',
              "write .to(torch_xla.device())")),
    _rule("cuda-device", "a device is named cuda", _SOURCE, (0.25, 0.5, 0.02, 0.08),
          _moved("leave it out, or take a device of jax.devices()", 'take the name from one setting; there it is "tpu"',
                 "take the device from torch_xla.device()")),
    _rule("cuda-current-device", "the current CUDA device is set or asked for", _SOURCE, (0.25, 1, 0.05, 0.15),
          _moved("leave it out: one process sees all its devices",
              "use the device of the local rank; torch.accelerator is the neutral name",
                 "leave it out: each process has one device")),
    _rule("cuda-tensor-type", "a tensor type of torch.cuda", _SOURCE, (0.25, 0.5, 0.05, 0.1),
          _moved("make the array with a dtype", "make the tensor with dtype= and device=",
              "make the tensor with dtype= and device=")),
    _rule("cuda-query", "code asks which CUDA devices there are", _SOURCE, (0.25, 0.5, 0.02, 0.08), {
        "J": ("check", "answers no on a TPU: the CPU branch would be taken", "ask jax.devices()"),
        "T": ("check", "answers no on a TPU: the CPU branch would be taken",
            "ask torch.accelerator, or take the device from a setting"),
        "X": ("check", "answers no on a TPU: the CPU branch would be taken", "take the device from torch_xla.device()"),
        "A": ("check", "answers yes on ROCm; capabilities and names are others", "do not branch on compute capability"),
        "F": ("check", "to be asked of the other framework", "take the device from one setting"),
    }),
    _rule("cuda-seed", "random numbers of CUDA devices are seeded", TORCH_DOCS, (0.1, 0.25, 0.02, 0.05), {
        "J": ("check", "JAX has explicit random keys", "pass jax.random keys"),
        "TX": ("check", "seeds CUDA only", "torch.manual_seed seeds every device"),
        "A": _ROCM,
        "F": ("check", "seeds are set in other ways", "use the other framework's seed"),
    }),
    _rule("cuda-memory", "memory of CUDA devices is asked for or freed", _SOURCE, (0.25, 1, 0.05, 0.1), {
        "J": ("check", "fails or says nothing there", "use device.memory_stats()"),
        "T": ("check", "fails or says nothing there; no equivalent is documented for TorchTPU 0.2.0", "leave it out on TPU"),
        "X": ("check", "fails or says nothing there", "use torch_xla.core.xla_model.get_memory_info"),
        "A": _ROCM,
        "F": ("check", "to be asked of the other framework", "leave it out first"),
    }),
    _rule("cuda-stream", "CUDA streams, events or a synchronisation", _SOURCE, (1, 4, 0.25, 1), {
        "J": ("work", "there are no streams: the compiler orders the work", "leave them out; time with block_until_ready"),
        "T": ("work", "there are no CUDA streams; no equivalent is documented for TorchTPU 0.2.0", "leave them out"),
        "X": ("work", "there are no streams: tensors are lazy", "leave them out; wait with torch_xla.sync()"),
        "A": ("none", "HIP streams answer to the same names", ""),
        "F": ("work", "streams are hidden in other frameworks", "leave them out"),
    }),
    _rule("cuda-graph", "CUDA graphs are captured", _SOURCE, (2, 8, 0.5, 2), {
        "J": ("work", "a jitted step is one program already", "leave them out and jit the whole step"),
        "TX": ("work", "there are no CUDA graphs", "leave them out and compile the whole step"),
        "A": ("check", "HIP graphs exist; not every library can be captured", "test it, or leave them out"),
        "F": ("work", "there are no CUDA graphs to call", "compile the step with the other framework's means"),
    }),
    _rule("cuda-profile", "CUDA profiling marks", TORCH_DOCS, (0.25, 1, 0.05, 0.1), {
        "J": ("check", "not there", "use jax.profiler"), "TX": ("check", "not there", "use torch.profiler or the XLA profiler"),
        "A": ("check", "marks go to roctx", "see that the profiler shows them"), "F": ("check", "not there",
            "use its own profiler"),
    }),
    _rule("cuda-api", "another function of torch.cuda", _SOURCE, (0.5, 2, 0.1, 0.5),
          _moved("find out what it is for", "find out what it is for; torch.accelerator has some of them",
              "find out what it is for")),
    _rule("torch-amp", "mixed precision by autocast or a gradient scaler", f"{TORCH_DOCS}; {TORCH_TPU}", (0.5, 2, 0.1, 0.3), {
        "J": ("work", "JAX has no autocast", "set dtypes of parameters and computation; bf16 needs no loss scaling"),
        "T": ("work", "bf16 is the type of the matrix units and needs no scaler; autocast for tpu is not verified here",
              "use bf16, drop the GradScaler"),
        "X": ("work", "autocast takes the device xla; bf16 needs no scaler", 'use torch.autocast("xla", dtype=torch.bfloat16)'),
        "A": _ROCM,
        "F": ("work", "done in another way", "set the precision policy of the other framework"),
    }),
    _rule("cudnn-flags", "flags of cuDNN or of the CUDA matrix library", TORCH_DOCS, (0.1, 0.5, 0.02, 0.05), {
        "J": ("check", "without effect", "precision is set by jax.default_matmul_precision"), "TX": ("check", "without effect",
            "leave them out"),
        "A": ("check", "MIOpen and hipBLAS stand in; some flags do nothing", "see what remains of speed and precision"),
        "F": ("check", "without effect", "leave them out"),
    }),
    _rule("gpu-environment", "an environment variable of CUDA, NCCL or HIP", TORCH_DOCS, (0.1, 0.5, 0.02, 0.1), {
        "JTX": ("check", "without effect on TPU", "leave it out"),
        "A": ("check", "ROCm has HIP_VISIBLE_DEVICES and reads most NCCL variables", "see which are read"),
        "F": ("check", "may be read by the other framework too", "see which are read"),
    }),
    _rule("nvidia-tool", "a tool or library of NVIDIA's driver is called", TORCH_DOCS, (0.25, 1, 0.1, 0.25), {
        "JTX": ("work", "not there on a TPU host", "use tpu-info, or leave it out"), "A": ("work", "not there",
            "use amd-smi or rocm-smi"),
    }),
    _rule("cuda-image", "a container image or setting for NVIDIA GPUs", TORCH_DOCS, (0.5, 2, 0.25, 0.5), {
        "JTX": ("work", "the image carries CUDA, not libtpu", "start from a plain Python image on a TPU VM"),
        "A": ("work", "the image carries CUDA", "start from an image of rocm/pytorch"),
    }),
)
