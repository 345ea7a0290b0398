"""One step in MXNet: a hybridized Gluon block with static memory, `autograd.record`, and a `Trainer` with MXNet's own optimizers.

The loss is a Gluon loss, hybridized too. AdamW, which 1.9 has no Python class for, is MXNet's own update kernel.
"""
# ruff: noqa: ARG001, ARG002 (signatures of others)

from typing import Any

import mxnet as mx
from mxnet import autograd, gluon

from bench.native.cases import LEARNING_RATES, Case, random_batch
from bench.native.mxnet_models import build


class AdamW(mx.optimizer.Optimizer):
    """Decoupled weight decay over MXNet's `adamw_update`."""

    def create_state(self, index: int, weight: Any) -> Any:
        """Return the two moments."""
        return mx.nd.zeros_like(weight), mx.nd.zeros_like(weight), [0]

    def update(self, index: int, weight: Any, grad: Any, state: Any) -> None:
        """Update one weight."""
        mean, variance, steps = state
        steps[0] += 1
        rate = self.lr * (1 - 0.999 ** steps[0]) ** 0.5 / (1 - 0.9 ** steps[0])
        one = mx.nd.ones((1,))
        mx.nd.contrib.adamw_update(weight, grad, mean, variance, one, lr=rate, eta=1.0, wd=0.01, epsilon=1e-8, out=weight)


class MxnetNative:
    """A model, its batch and its trainer."""

    def __init__(self, case: Case) -> None:
        mx.random.seed(0)
        self.case = case
        self.model = build(case)
        self.model.initialize(mx.init.Normal(0.02))
        self.model.hybridize(static_alloc=True, static_shape=True)
        self.loss: Any = _loss(case.family)
        self.loss.hybridize(static_alloc=True, static_shape=True)
        batch = random_batch(case)
        self.inputs, self.targets = [_array(array) for array in batch.inputs], mx.nd.array(batch.targets)
        self.model(*self.inputs).wait_to_read()
        trained = [p for p in self.model.collect_params().values() if p.grad_req != "null"]
        self.parameter_count = sum(p.data().size for p in trained)
        self.trainer = gluon.Trainer(self.model.collect_params(), _optimizer(case.optimizer)) if case.trains else None

    def step(self) -> float:
        """Train on the batch and return the loss, or infer and return one output value."""
        if self.trainer is None:
            return float(self.model(*self.inputs).reshape((-1,))[-1].asscalar())
        with autograd.record():
            loss = self.loss(self.model(*self.inputs), self.targets).mean()
        loss.backward()
        self.trainer.step(1)
        mx.nd.waitall()
        return float(loss.asscalar())


def _loss(family: str) -> Any:
    if family == "dlrm":
        return gluon.loss.SigmoidBCELoss()
    return gluon.loss.SoftmaxCELoss(axis=1 if family == "unet" else -1)


def _optimizer(name: str) -> Any:
    rate = LEARNING_RATES[name]
    match name:
        case "adamw":
            return AdamW(learning_rate=rate)
        case "adam":
            return mx.optimizer.Adam(learning_rate=rate)
        case "momentum":
            return mx.optimizer.SGD(learning_rate=rate, momentum=0.9)
        case _:
            return mx.optimizer.SGD(learning_rate=rate)


def _array(array: Any) -> Any:
    """Return MXNet's usual layout: channels before height and width."""
    return mx.nd.array(array.transpose(0, 3, 1, 2) if array.ndim == 4 else array, dtype=array.dtype)


def prepare(case: Case, runtime: str) -> MxnetNative:
    """Return the native."""
    return MxnetNative(case)
