"""PyTorch, eager and compiled: layers are `nn.Module`s, images are NCHW, the optimizer is torch's own.

`torch-compile` compiles the forward and backward of the module with inductor and leaves the optimizer eager, which is what
`torch.compile(model)` in a training script does.
"""

from functools import partial
from importlib.metadata import version
from typing import Any

from core.errors import WorkerError
from probes.backends import torch_layers
from probes.backends.proofs import is_kernel, torch_facts
from probes.case import LEARNING_RATE, Case, Materials, Program, cotangent, direction, materials

RUNTIMES = ("torch-eager", "torch-compile")


def open_backend(runtime: str, device_kind: str) -> "TorchBackend":
    """Import torch and assert that the device is there.

    Raises:
        WorkerError: the device kind is not what torch sees.
    """
    return TorchBackend(runtime, device_kind)


class TorchBackend:
    """One torch process."""

    def __init__(self, runtime: str, device_kind: str) -> None:
        import torch

        self.torch = torch
        self.compiled = self.first_call_compiles = runtime == "torch-compile"
        if device_kind == "gpu" and not torch.cuda.is_available():
            raise WorkerError(f"got torch {torch.__version__} without a usable GPU; expected cuda; install the GPU build")
        self.device = torch.device("cuda" if device_kind == "gpu" else "cpu")
        torch.set_float32_matmul_precision("highest")
        if self.compiled:
            self._start_compiler()

    def _start_compiler(self) -> None:
        """Compile next to nothing, so that importing the compiler and looking for its tools is in no probe's compile time."""
        row = self.torch.ones(1, device=self.device, requires_grad=True)
        self.torch.compile(lambda x: x + x, dynamic=False)(row).sum().backward()

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs, as packages tell them: torch itself adds its build where its package does not."""
        return (("torch", version("torch")),)

    def platform(self) -> str:
        """Return where arrays lie."""
        return self.torch.zeros(1, device=self.device).device.type

    def describe(self) -> str:
        """Return one line on the device and the threads."""
        return f"{self.device.type}, {self.torch.get_num_threads()} threads"

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks."""
        chain, optimizer, inputs = self._build(case, materials(case))
        forward = self._callable(chain)
        if not case.training:
            into = {"into": self.torch.empty_like(inputs["x"])} if case.reuses_result else {}
            infer = partial(self._infer, forward, {**inputs, **into})
            facts = partial(torch_facts, self.torch, self.compiled, infer) if self.compiled and is_kernel(case) else None
            return Program(infer, self.first_call_compiles, self._release, lambda: inputs, facts)
        grown = None if case.ends_in_loss else self._cotangent(case, chain, inputs)

        def step() -> Any:
            optimizer.zero_grad(set_to_none=True)
            if case.needs_input_gradient:
                inputs["x"].grad = None
            output = forward(inputs)
            output.backward(grown)
            optimizer.step()
            self.synchronise(output)
            return output

        return Program(step, self.first_call_compiles, self._release, lambda: inputs)

    def answer(self, case: Case) -> tuple[Any, float | None]:
        """Return the output of one forward pass in canonical layout, and the directional derivative when training."""
        chain, _, inputs = self._build(case, drawn := materials(case))
        forward = self._callable(chain)
        output = forward(inputs)
        plain = torch_layers.to_canonical(output.detach())
        if not case.training:
            return plain, None
        output.backward(
            None if case.ends_in_loss else self._to_device(torch_layers.from_canonical(cotangent(plain.shape, case.seed)))
        )
        return plain, torch_layers.directional(chain.copies[0], direction(drawn.weights[0], case.seed))

    def _callable(self, chain: Any) -> Any:
        """Return the chain, compiled where the runtime compiles.

        Shapes are fixed: a worker compiles one small and then one real size of the same code, which `torch.compile` would take
        for a size that varies. A user's first compilation is for fixed shapes.
        """
        return self.torch.compile(chain, dynamic=False) if self.compiled else chain

    def synchronise(self, output: Any) -> None:
        """Wait for the device and read one element of the output."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
            output.detach().reshape(-1)[0].item()

    def _build(self, case: Case, drawn: Materials) -> tuple[Any, Any, dict[str, Any]]:
        torch = self.torch
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[case.dtype]
        chain = torch_layers.chain(case, drawn).to(device=self.device, dtype=dtype)
        chain.train(case.training)
        inputs = {}
        for name, spec in case.block.inputs(case.sizes).items():
            array = drawn.inputs[name]
            tensor = torch_layers.from_canonical(array) if spec.kind == "image" else torch_layers.owned(array)
            inputs[name] = (tensor.long() if spec.kind == "token" else tensor.to(dtype)).to(self.device)
        if case.needs_input_gradient:
            inputs["x"].requires_grad_(True)
        return chain, self._optimizer(case.optimizer, chain) if case.training else None, inputs

    def _optimizer(self, name: str, chain: Any) -> Any:
        torch = self.torch
        parameters = list(chain.parameters()) or [torch.nn.Parameter(torch.zeros(1, device=self.device))]
        match name:
            case "adamw":
                return torch.optim.AdamW(parameters, lr=LEARNING_RATE)
            case "adam":
                return torch.optim.Adam(parameters, lr=LEARNING_RATE)
            case "momentum":
                return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9)
            case _:
                return torch.optim.SGD(parameters, lr=LEARNING_RATE)

    def _infer(self, forward: Any, inputs: dict[str, Any]) -> Any:
        with self.torch.inference_mode():
            output = forward(inputs)
            self.synchronise(output)
            return output

    def _cotangent(self, case: Case, chain: Any, inputs: dict[str, Any]) -> Any:
        with self.torch.no_grad():
            shape = torch_layers.to_canonical(chain(inputs)).shape
        return self._to_device(torch_layers.from_canonical(cotangent(shape, case.seed))).to(next(iter(inputs.values())).dtype)

    def _to_device(self, tensor: Any) -> Any:
        return tensor.to(self.device)

    def _release(self) -> None:
        if self.compiled:
            self.torch.compiler.reset()
