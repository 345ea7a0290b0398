"""TensorFlow's transfers, compiling and allocation, for system probes.

No collectives: TensorFlow's own run inside `tf.distribute`, which on logical CPU devices adds up on one of them; what it would
measure is no link.
"""

from pathlib import Path
from typing import Any

from probes.backends.system_parts import Lane, Layers, drawn_layers
from probes.rig import must_equal


def open_links(backend: Any, device_kind: str, runtime: str) -> "TensorflowLinks":
    """Return the primitives over an opened backend."""
    return TensorflowLinks(backend.tf, device_kind, runtime == "tf-xla")


class TensorflowLinks:
    """Primitives of one TensorFlow process."""

    def __init__(self, tf: Any, device_kind: str, xla: bool) -> None:
        self.tf, self.device_kind, self.xla = tf, device_kind, xla
        self.device = "/GPU:0" if device_kind == "gpu" else "/CPU:0"
        self.out_of_memory = (tf.errors.ResourceExhaustedError, MemoryError)
        self.kinds = ("pageable",)
        self.far_end: Any = None

    def device_count(self) -> int:
        """Return how many devices this process has."""
        return len(self.tf.config.list_logical_devices("GPU" if self.device_kind == "gpu" else "CPU"))

    def host(self, values: Any, memory: str) -> Any:
        """Return values in host memory; TensorFlow takes numpy's."""
        return values

    def upload(self, host: Any) -> Any:
        """Copy to the device and wait; `tf.constant` always copies."""
        with self.tf.device(self.device):
            arrived = self.tf.constant(host)
        return self._waited(arrived)

    def fresh(self, tensor: Any) -> Any:
        """Return a tensor that no host copy is kept of: TensorFlow keeps none."""
        return tensor

    def download(self, tensor: Any) -> Any:
        """Copy to the host and wait; `numpy()` copies."""
        return tensor.numpy()

    def drop(self, tensor: Any) -> None:
        """Leave a tensor to the allocator."""

    def gemm(self, n: int, left: Any, right: Any) -> Lane:
        """Return a product, its answer checked."""
        a, b = self.upload(left), self.upload(right)
        must_equal(self.tf.matmul(a, b)[:1].numpy(), left[:1] @ right, f"a product of {n} x {n}")
        return Lane(lambda: self.tf.matmul(a, b), self._waited)

    def layers(self, what: str, count: int, seed: int, folder: Path) -> Layers:
        """Return a network whose next call is traced and compiled in the way that is asked for.

        Args:
            what: `first`, `new_shape`, or `dynamic` (the first call with the number of rows left open).
            count: layers.
            seed: of weights and input.
            folder: not used: TensorFlow keeps no programs unless told in its environment.
        """
        tf = self.tf
        drawn, rows, expected = drawn_layers(count, seed)
        weights = [self.upload(w) for w in drawn]
        state: dict[str, Any] = {"x": self.upload(rows), "done": 0}

        def fresh() -> None:
            open_rows = (tf.TensorSpec((None, rows.shape[1]), tf.float32),) if what == "dynamic" else None

            def network(x: Any) -> Any:
                state["done"] += 1
                for w in weights:
                    x = tf.tanh(tf.matmul(x, w))
                return x

            state["call"] = tf.function(network, input_signature=open_rows, jit_compile=self.xla, autograph=False)

        def before() -> None:
            if what == "new_shape":
                state["x"] = self._waited(tf.concat([state["x"], state["x"][:1]], 0))
            else:
                fresh()

        def run() -> Any:
            return self._waited(state["call"](state["x"]))

        fresh()
        must_equal(run().numpy(), expected, f"{count} layers")
        return Layers(before, run, lambda: state["done"])

    def allocate(self, size_bytes: int) -> Any:
        """Return that many bytes of the device, every page written."""
        with self.tf.device(self.device):
            return self._waited(self.tf.fill((size_bytes // 4,), 1.5))

    def free_bytes(self) -> int | None:
        """Return what the device has free; TensorFlow does not tell."""
        return None

    def _waited(self, tensor: Any) -> Any:
        """Return a tensor that is there: one element of it is read."""
        if self.device_kind == "gpu":
            self.tf.reshape(tensor, (-1,))[0].numpy()
        return tensor
