"""A runtime in numpy that fulfils the protocol of `probes.model_flat.Model`: towers of dense layers and a classifier at the end.

It starts in a tenth of a second, so that drills can kill sides by the dozen.
"""

import numpy as np

from probes.model import flat_weights, slots_of
from probes.model_flat import stretches


class Backend:
    def versions(self):
        return (("numpy", np.__version__),)

    def describe(self):
        return "numpy"


def open_backend(runtime, device_kind):
    return Backend()


def open_model(backend, part, optimizer, dtype, seed, learning_rate=1e-2):
    return NumpyModel(part, optimizer, seed, learning_rate)


class NumpyModel:
    def __init__(self, part, optimizer, seed, rate):
        self.part, self.optimizer, self.rate = part, optimizer, np.float32(rate)
        self.flat = flat_weights(part, seed)
        self.parameter_count = self.flat.size
        self.total = np.zeros_like(self.flat)
        self.speed = np.zeros_like(self.flat)
        self.kept = {}
        self.layers = []
        for piece in part.pieces:
            last = len(piece.layers) - 1
            for number, slot in enumerate(slots_of([piece])):
                name = "none"
                if piece.kind == "dense_tower":
                    name = dict(piece.sizes)["last_activation" if number == last else "activation"]
                found = {s.array: s for s in stretches(slots_of(part.pieces)) if s.slot.key == slot.key}
                self.layers.append((found["kernel"], found["bias"], name))
        self.labels = part.pieces[-1].key("labels") if part.ends else ""

    def _of(self, stretch):
        return self.flat[stretch.start : stretch.stop].reshape(stretch.shape)

    def weights(self):
        return self.flat

    def load(self, flat):
        self.flat = np.array(flat, np.float32)

    def _through(self, inputs):
        values = [np.asarray(inputs["x"], np.float32)]
        for kernel, bias, name in self.layers:
            y = values[-1] @ self._of(kernel) + self._of(bias)
            values.append(np.maximum(y, 0) if name == "relu" else y)
        return values

    def infer(self, inputs):
        return self._through(inputs)[-1]

    def forward(self, key, inputs):
        values = self._through(inputs)
        if not self.part.ends:
            self.kept[key] = values, None
            return values[-1]
        logits = values[-1] - values[-1].max(-1, keepdims=True)
        chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        rows, labels = np.arange(len(logits)), inputs[self.labels]
        loss = float(-np.log(chances[rows, labels]).mean())
        chances[rows, labels] -= 1
        self.kept[key] = values, chances / np.float32(len(logits))
        return loss

    def backward(self, key, cotangent, weight):
        values, own = self.kept.pop(key)
        back = own if self.part.ends else cotangent
        for (kernel, bias, name), before, after in zip(self.layers[::-1], values[-2::-1], values[:0:-1], strict=True):
            if name == "relu":
                back = back * (after > 0)
            self.total[kernel.start : kernel.stop] += np.float32(weight) * (before.T @ back).ravel()
            self.total[bias.start : bias.stop] += np.float32(weight) * back.sum(0)
            back = back @ self._of(kernel).T
        return None if self.part.starts else back.astype(np.float32)

    def run(self, inputs, weight):
        loss = self.forward(0, inputs)
        self.backward(0, None, weight)
        return loss

    def gradients(self, out=None):
        total, self.total = self.total, np.zeros_like(self.total)
        return total

    def update(self, flat):
        self.speed = np.float32(0.9) * self.speed + flat if self.optimizer == "momentum" else flat
        self.flat = self.flat - self.rate * self.speed
