"""JAX's transfers, collectives, compiling and allocation, for system probes.

On a CPU `device_put` of an aligned numpy array is no copy but an alias: such an array is copied explicitly. A `jax.Array` keeps
the host copy that was once made of it, so a download takes a fresh array each time.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from probes.backends.system_parts import Lane, Layers, drawn_layers
from probes.collectives import floats_of_rank, reference, rows
from probes.rig import must_equal

ALIGNED = 64
COMPILED = "/jax/core/compile/backend_compile_duration"


def open_links(backend: Any, device_kind: str, runtime: str) -> "JaxLinks":
    """Return the primitives over an opened backend."""
    return JaxLinks(backend.jax, device_kind)


class JaxLinks:
    """Primitives of one jax process."""

    def __init__(self, jax: Any, device_kind: str) -> None:
        self.jax, self.device_kind = jax, device_kind
        self.device = jax.devices()[0]
        self.out_of_memory = (RuntimeError, MemoryError, ValueError)
        self.kinds = ("pageable",) if device_kind == "cpu" else ("pageable", "pinned")
        self.far_end: Any = None

    def device_count(self) -> int:
        """Return how many devices this process has."""
        return len(self.jax.devices())

    def host(self, values: Any, memory: str) -> Any:
        """Return values in host memory of a kind, as `upload` takes them."""
        if memory == "pageable":
            return values
        pinned = self.jax.sharding.SingleDeviceSharding(self.device, memory_kind="pinned_host")
        return self.jax.block_until_ready(self.jax.device_put(values, pinned))

    def upload(self, host: Any) -> Any:
        """Copy to the device and wait."""
        if self.device_kind == "cpu" and host.ctypes.data % ALIGNED == 0:
            return self.jax.numpy.array(host, copy=True).block_until_ready()
        return self.jax.device_put(host, self.device).block_until_ready()

    def fresh(self, array: Any) -> Any:
        """Return an array that no host copy is kept of."""
        return array if self.device_kind == "cpu" else self.jax.numpy.array(array, copy=True).block_until_ready()

    def download(self, array: Any) -> Any:
        """Copy to the host and wait; on a CPU numpy would look into the device's own memory, so it is told to copy."""
        import numpy as np

        return np.array(array, copy=True) if self.device_kind == "cpu" else np.asarray(array)

    def drop(self, array: Any) -> None:
        """Free an array."""
        array.delete()

    def lane(self, name: str, message_bytes: int, ranks: int, seed: int) -> Lane:
        """Return a collective, or a ring of sends, over the first `ranks` devices, its answer checked."""
        import numpy as np

        jax, lax = self.jax, self.jax.lax
        bodies = {
            "all_reduce": lambda x: lax.psum(x, "d"),
            "all_gather": lambda x: lax.all_gather(x, "d", tiled=True),
            "reduce_scatter": lambda x: lax.psum_scatter(x, "d", tiled=True),
            "all_to_all": lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True),
            "ring": lambda x: lax.ppermute(x, "d", [(i, (i + 1) % ranks) for i in range(ranks)]),
        }
        spec = jax.sharding.PartitionSpec("d")
        mesh = jax.sharding.Mesh(np.array(jax.devices()[:ranks]), ("d",))
        put_in = rows(ranks, floats_of_rank(name, message_bytes, ranks), seed)
        x = jax.device_put(put_in.reshape(-1), jax.sharding.NamedSharding(mesh, spec))
        call = jax.jit(jax.shard_map(bodies[name], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
        must_equal(np.asarray(call(x)).reshape(ranks, -1), reference(name, put_in), name)
        return Lane(lambda: call(x), jax.block_until_ready)

    def gemm(self, n: int, left: Any, right: Any) -> Lane:
        """Return a product that is started without waiting, its answer checked."""
        import numpy as np

        a, b = self.jax.device_put(left, self.device), self.jax.device_put(right, self.device)
        call = self.jax.jit(lambda x, y: x @ y)
        must_equal(np.asarray(call(a, b))[:1], left[:1] @ right, f"a product of {n} x {n}")
        return Lane(lambda: call(a, b), self.jax.block_until_ready)

    def layers(self, what: str, count: int, seed: int, folder: Path) -> Layers:
        """Return a network whose next call compiles in the way that is asked for.

        Args:
            what: `first`, `new_shape` or `cached` (a new process' first call, with the compiled program on disk).
            count: layers.
            seed: of weights and input.
            folder: empty, for the cache on disk.
        """
        import numpy as np

        jax = self.jax
        weights, x, expected = drawn_layers(count, seed)
        weights = [jax.device_put(w, self.device) for w in weights]
        state: dict[str, Any] = {"x": jax.device_put(x, self.device), "call": self._fresh_network()}
        done = [0]
        jax.monitoring.register_event_duration_secs_listener(partial(_count, done))
        self._cache_on_disk(str(folder) if what == "cached" else None)

        def before() -> None:
            if what == "new_shape":
                state["x"] = jax.device_put(np.concatenate([np.asarray(state["x"]), x[:1]]), self.device).block_until_ready()
            else:
                state["call"] = self._fresh_network()

        def run() -> Any:
            return state["call"](weights, state["x"]).block_until_ready()

        must_equal(np.asarray(run()), expected, f"{count} layers")
        return Layers(before, run, lambda: done[0], partial(self._cache_on_disk, None))

    def allocate(self, size_bytes: int) -> Any:
        """Return that many bytes of the device, every page written."""
        return self.jax.numpy.full((size_bytes // 4,), 1.5, "float32", device=self.device).block_until_ready()

    def free_bytes(self) -> int | None:
        """Return what the device's allocator may still hand out; None on a CPU, whose memory is everybody's."""
        told = self.device.memory_stats() if self.device_kind != "cpu" else None
        return told["bytes_limit"] - told["bytes_in_use"] if told else None

    def _fresh_network(self) -> Callable[..., Any]:
        tanh = self.jax.numpy.tanh

        def network(weights: Any, x: Any) -> Any:
            for w in weights:
                x = tanh(x @ w)
            return x

        return self.jax.jit(network)

    def _cache_on_disk(self, folder: str | None) -> None:
        from jax.experimental.compilation_cache import compilation_cache

        update = self.jax.config.update
        update("jax_compilation_cache_dir", folder)
        update("jax_enable_compilation_cache", folder is not None)
        update("jax_persistent_cache_min_compile_time_secs", 0.0)
        update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()


def _count(done: list[int], event: str, seconds: float, **facts: Any) -> None:
    if event == COMPILED:
        done[0] += 1
