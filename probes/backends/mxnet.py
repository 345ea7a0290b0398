"""Apache MXNet 1.9, Gluon: hybridized blocks with static memory, `autograd.record`, `gluon.Trainer`; images are NCHW.

Hybridizing is what Gluon's own guide tells everyone to do; the first call makes the graph. MXNet queues work on an engine of its
own, so a step ends with `waitall`, which waits for the updated weights too.
"""

from typing import Any

from core.errors import WorkerError
from probes.backends.mxnet_layers import Bound, own_layout
from probes.backends.mxnet_ops import MxnetOps
from probes.case import LEARNING_RATE, Case, Materials, Program, cotangent, direction, materials

RUNTIMES = ("mxnet",)
WEIGHT_DECAY = 0.01


def open_backend(runtime: str, device_kind: str) -> "MxnetBackend":
    """Import mxnet and assert that the device is there.

    Raises:
        WorkerError: the device kind is not what mxnet sees.
    """
    return MxnetBackend(device_kind)


class MxnetBackend:
    """One mxnet process."""

    def __init__(self, device_kind: str) -> None:
        import mxnet

        self.mx = mxnet
        if device_kind == "tpu" or (device_kind == "gpu" and not mxnet.context.num_gpus()):
            raise WorkerError(f"got mxnet {mxnet.__version__} without a {device_kind}; expected one; MXNet is for CUDA 11")
        self.context = mxnet.gpu() if device_kind == "gpu" else mxnet.cpu()

    def versions(self) -> tuple[tuple[str, str], ...]:
        """Return (distribution, version) pairs."""
        return (("mxnet", self.mx.__version__),)

    def describe(self) -> str:
        """Return one line on the device."""
        return str(self.context)

    def block_program(self, case: Case) -> Program:
        """Return a step of a chain of blocks."""
        chain, inputs = self._build(case, materials(case))
        if not case.training:
            return Program(lambda: self._infer(chain, inputs), True, arguments=lambda: inputs)
        trainer = self._trainer(chain, case.optimizer)
        grown = None if case.ends_in_loss else self._cotangent(case, chain, inputs)

        def step() -> Any:
            with self.mx.autograd.record():
                output = chain(*inputs.values())
            output.backward(grown)
            if trainer is not None:
                trainer.step(1)
            self.mx.nd.waitall()
            return output

        return Program(step, True, arguments=lambda: inputs)

    def answer(self, case: Case) -> tuple[Any, float | None]:
        """Return the output of one forward pass in canonical layout, and the directional derivative when training."""
        drawn = materials(case)
        chain, inputs = self._build(case, drawn)
        with self.mx.autograd.record(train_mode=case.training):
            output = chain(*inputs.values())
        plain = _to_canonical(output.asnumpy())
        plain = plain.reshape(()) if case.ends_in_loss else plain
        if not case.training:
            return plain, None
        output.backward(None if case.ends_in_loss else self._array(_from_canonical(cotangent(plain.shape, case.seed))))
        along = direction(drawn.weights[0], case.seed)
        return plain, sum(_slope(chain.bound[0][name], arrays) for name, arrays in along.items())

    def _build(self, case: Case, drawn: Materials) -> tuple[Any, dict[str, Any]]:
        if case.dtype != "fp32":
            raise WorkerError(f"got dtype {case.dtype}; expected fp32; MXNet 1.9 has no {case.dtype} layers")
        chain = _chain(case)
        chain.initialize(ctx=self.context)
        for bound, weights in zip(chain.bound, drawn.weights, strict=True):
            for name, layer in bound.items():
                layer.fill(weights[name])
        chain.hybridize(static_alloc=True, static_shape=True)
        kinds = {name: spec.kind for name, spec in case.block.inputs(case.sizes).items()}
        inputs = {
            name: self._array(_from_canonical(array) if kinds[name] == "image" else array) for name, array in drawn.inputs.items()
        }
        if case.needs_input_gradient:
            inputs["x"].attach_grad()
        return chain, inputs

    def _array(self, array: Any) -> Any:
        return self.mx.nd.array(array, ctx=self.context, dtype=array.dtype)

    def _trainer(self, chain: Any, optimizer: str) -> Any:
        """Return Gluon's trainer, or None when there is nothing to train."""
        parameters = chain.collect_params()
        if not any(parameter.grad_req != "null" for parameter in parameters.values()):
            return None
        own = self.mx.optimizer
        match optimizer:
            case "adamw":
                chosen = _adamw(self.mx)(learning_rate=LEARNING_RATE, wd=WEIGHT_DECAY)
            case "adam":
                chosen = own.Adam(learning_rate=LEARNING_RATE)
            case "momentum":
                chosen = own.SGD(learning_rate=LEARNING_RATE, momentum=0.9)
            case _:
                chosen = own.SGD(learning_rate=LEARNING_RATE)
        return self.mx.gluon.Trainer(parameters, chosen)

    def _infer(self, chain: Any, inputs: dict[str, Any]) -> Any:
        output = chain(*inputs.values())
        output.wait_to_read()
        return output

    def _cotangent(self, case: Case, chain: Any, inputs: dict[str, Any]) -> Any:
        shape = _to_canonical(chain(*inputs.values()).asnumpy()).shape
        return self._array(_from_canonical(cotangent(shape, case.seed)))


def _from_canonical(array: Any) -> Any:
    return array.transpose(0, 3, 1, 2).copy() if array.ndim == 4 else array


def _to_canonical(array: Any) -> Any:
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


def _slope(bound: Bound, along: dict[str, Any]) -> float:
    return sum(
        float((own_layout(bound.layer, array) * bound.parameters[key].grad().asnumpy()).sum(dtype="float64"))
        for key, array in along.items()
    )


def _chain(case: Case) -> Any:
    """Return a hybrid block that runs `case.depth` copies, each feeding the next; it takes the inputs in their order."""
    from mxnet import sym
    from mxnet.gluon import HybridBlock

    names = tuple(case.block.inputs(case.sizes))

    class Chain(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            specs = case.block.layers(case.sizes)
            with self.name_scope():
                self.bound = [
                    {name: Bound(spec, self, f"copy{i}_{name}") for name, spec in specs.items()} for i in range(case.depth)
                ]

        def hybrid_forward(self, F: Any, *given: Any, **_own: Any) -> Any:  # noqa: N803 - Gluon's own name
            ops, inputs = MxnetOps(F, F is sym, case.training), dict(zip(names, given, strict=True))
            x = inputs["x"]
            for copy in self.bound:
                x = case.block.forward(ops, copy, {**inputs, "x": x}, case.sizes)
            return x

    return Chain()


def _adamw(mx: Any) -> Any:
    """Return the class of an optimizer over MXNet's own AdamW kernel, which 1.9 has no Python class for.

    Source: Loshchilov, Hutter (2019), Decoupled Weight Decay Regularization; bias is corrected in the rate.
    """

    class AdamW(mx.optimizer.Optimizer):
        def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, **more: Any) -> None:
            super().__init__(**more)
            self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

        def create_state(self, index: int, weight: Any) -> Any:
            return tuple(mx.nd.zeros(weight.shape, weight.context, dtype=weight.dtype) for _ in range(2))

        def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
            self._update_count(index)
            t, rate, decay = self._index_update_count[index], self._get_lr(index), self._get_wd(index)
            corrected = rate * (1 - self.beta2**t) ** 0.5 / (1 - self.beta1**t)
            scale = mx.nd.full((1,), self.rescale_grad, weight.context)
            mx.nd.contrib.adamw_update(
                weight, grad, *state, rescale_grad=scale, lr=corrected, eta=1.0, wd=decay,
                beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, out=weight,
            )

    return AdamW
