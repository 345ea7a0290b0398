"""torch's transfers, collectives, compiling and allocation, for system probes.

Collectives run in a process group of real processes, as torch's users run them: this one is rank 0, the others are partners
(`probes/partner.py`) that meet through a file. gloo on a CPU, NCCL on GPUs, one of them a rank.
"""

import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from core.errors import WorkerError
from probes.backends.system_parts import Lane, Layers, drawn_layers
from probes.collectives import expected, floats_of_rank, row
from probes.partner import Partner
from probes.rig import must_equal

MEET_S = 60


def open_links(backend: Any, device_kind: str, runtime: str) -> "TorchLinks":
    """Return the primitives over an opened backend."""
    return TorchLinks(backend.torch, device_kind)


class TorchLinks:
    """Primitives of one torch process."""

    def __init__(self, torch: Any, device_kind: str) -> None:
        self.torch, self.device_kind = torch, device_kind
        self.device = torch.device("cuda" if device_kind == "gpu" else "cpu")
        self.out_of_memory = (RuntimeError, MemoryError)
        self.kinds = ("pageable", "pinned") if device_kind == "gpu" else ("pageable",)
        self.group: Group | None = None
        self.far_end: Any = None

    def device_count(self) -> int:
        """Return how many devices, or on a CPU how many processes, can take part; a CPU may be parted as often as is asked."""
        return self.torch.cuda.device_count() if self.device_kind == "gpu" else sys.maxsize

    def host(self, values: Any, memory: str) -> Any:
        """Return values in host memory of a kind, as `upload` takes them."""
        tensor = self.torch.from_numpy(values)
        return tensor.pin_memory() if memory == "pinned" else tensor

    def upload(self, host: Any) -> Any:
        """Copy to the device and wait; to a CPU device it is a copy in memory all the same."""
        source = host if isinstance(host, self.torch.Tensor) else self.torch.from_numpy(host)
        arrived = self.torch.empty(source.shape, dtype=source.dtype, device=self.device)
        arrived.copy_(source, non_blocking=True)
        self._wait()
        return arrived

    def fresh(self, tensor: Any) -> Any:
        """Return a tensor that no host copy is kept of: torch keeps none."""
        return tensor

    def download(self, tensor: Any) -> Any:
        """Copy to the host and wait."""
        landed = self.torch.empty(tensor.shape, dtype=tensor.dtype)
        landed.copy_(tensor)
        return landed.numpy()

    def drop(self, tensor: Any) -> None:
        """Leave a tensor to the allocator."""

    def lane(self, name: str, message_bytes: int, ranks: int, seed: int) -> Lane:
        """Return a collective, or a ring of sends, over `ranks` processes, its answer checked in every one."""
        if self.group is None or self.group.ranks != ranks:
            if self.group is not None:
                self.group.close()
            self.group = Group(self.device_kind, ranks)
        return self.group.lane(name, message_bytes, seed)

    def gemm(self, n: int, left: Any, right: Any) -> Lane:
        """Return a product that is started without waiting where the device allows it, its answer checked."""
        torch = self.torch
        a, b = torch.from_numpy(left).to(self.device), torch.from_numpy(right).to(self.device)
        must_equal((a @ b)[:1].cpu().numpy(), left[:1] @ right, f"a product of {n} x {n}")
        return Lane(lambda: torch.mm(a, b), lambda _: self._wait())

    def layers(self, what: str, count: int, seed: int, folder: Path) -> Layers:
        """Return a network whose next call compiles in the way that is asked for.

        Args:
            what: `first`, `new_shape`, `dynamic` (the first call with the number of rows left open) or `cached` (a first call
                with inductor's programs on disk).
            count: layers.
            seed: of weights and input.
            folder: empty, for the cache on disk.
        """
        torch = self.torch
        from torch._dynamo.utils import counters
        from torch._inductor import config as inductor

        drawn, first_rows, answer = drawn_layers(count, seed)
        weights = [torch.from_numpy(w).to(self.device) for w in drawn]
        state: dict[str, Any] = {"x": torch.from_numpy(first_rows).to(self.device)}
        kept = inductor.force_disable_caches, torch._dynamo.config.recompile_limit, os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        inductor.force_disable_caches = what != "cached"
        torch._dynamo.config.recompile_limit = 10_000
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)
        done = [0]

        def fresh() -> None:
            torch.compiler.reset()
            state["call"] = torch.compile(_network, dynamic=what == "dynamic")

        def before() -> None:
            if what == "new_shape":
                state["x"] = torch.cat([state["x"], state["x"][:1]])
            else:
                fresh()
            counters.clear()

        def run() -> Any:
            with torch.inference_mode():
                produced = state["call"](weights, state["x"])
                self._wait()
            done[0] += counters["stats"]["unique_graphs"]
            return produced

        def close() -> None:
            inductor.force_disable_caches, torch._dynamo.config.recompile_limit = kept[:2]
            if kept[2] is not None:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = kept[2]
            torch.compiler.reset()

        fresh()
        must_equal(run().cpu().numpy(), answer, f"{count} layers")
        return Layers(before, run, lambda: done[0], close)

    def allocate(self, size_bytes: int) -> Any:
        """Return that many bytes of the device, every page written."""
        held = self.torch.full((size_bytes // 4,), 1.5, dtype=self.torch.float32, device=self.device)
        self._wait()
        return held

    def free_bytes(self) -> int | None:
        """Return what the device has free; None on a CPU, whose memory is everybody's."""
        if self.device_kind != "gpu":
            return None
        self.torch.cuda.empty_cache()
        return self.torch.cuda.mem_get_info()[0]

    def _wait(self) -> None:
        if self.device_kind == "gpu":
            self.torch.cuda.synchronize()


def _network(weights: Any, x: Any) -> Any:
    for w in weights:
        x = (x @ w).tanh()
    return x


class Rank:
    """One member of a process group.

    Args:
        device_kind: `cpu` or `gpu`.
        rank, ranks: which of how many.
        rendezvous: file that all meet at.
    """

    def __init__(self, device_kind: str, rank: int, ranks: int, rendezvous: str) -> None:
        import torch

        self.torch, self.distributed = torch, torch.distributed
        self.rank, self.ranks = rank, ranks
        self.device = torch.device("cuda", rank) if device_kind == "gpu" else torch.device("cpu")
        if device_kind == "gpu":
            torch.cuda.set_device(self.device)
        self.distributed.init_process_group(
            "nccl" if device_kind == "gpu" else "gloo",
            init_method=f"file://{rendezvous}",
            rank=rank,
            world_size=ranks,
            timeout=timedelta(seconds=MEET_S),
        )
        self.name = ""

    def follow(self, message: dict[str, Any]) -> None:
        """Do what rank 0 says: take part in another collective, or in so many calls of it."""
        if message["do"] == "load":
            self.load(message["name"], message["bytes"], message["seed"])
            return
        self.meet()
        for _ in range(message["calls"]):
            self.before()
            self.wait(self.start())

    def load(self, name: str, message_bytes: int, seed: int) -> None:
        """Make the buffers of a collective, run it once and check the answer."""
        torch = self.torch
        count = floats_of_rank(name, message_bytes, self.ranks)
        got_out = {"all_gather": count * self.ranks, "reduce_scatter": count // self.ranks}.get(name, count)
        self.name = name
        self.source = torch.from_numpy(row(self.rank, count, seed)).to(self.device)
        self.x = self.source.clone()
        self.out = torch.empty(got_out, device=self.device)
        self.before()
        self.wait(self.start())
        answer = (self.x if name == "all_reduce" else self.out).cpu().numpy()
        must_equal(answer, expected(name, self.rank, self.ranks, count, seed), name)

    def before(self) -> None:
        """Lay fresh data where the sum will be, so that it never grows."""
        if self.name == "all_reduce":
            self.x.copy_(self.source)

    def meet(self) -> None:
        """Wait for all the others; calls of one sample then follow each other, as in nccl-tests."""
        self.distributed.barrier()

    def start(self) -> Any:
        """Start the collective and return its handle."""
        together = self.distributed
        match self.name:
            case "all_reduce":
                return [together.all_reduce(self.x, async_op=True)]
            case "all_gather":
                return [together.all_gather_into_tensor(self.out, self.x, async_op=True)]
            case "reduce_scatter":
                return [together.reduce_scatter_tensor(self.out, self.x, async_op=True)]
            case "all_to_all":
                return [together.all_to_all_single(self.out, self.x, async_op=True)]
            case _:
                after, ahead = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
                send = together.P2POp(together.isend, self.x, after)
                receive = together.P2POp(together.irecv, self.out, ahead)
                return together.batch_isend_irecv([send, receive])

    def wait(self, handles: Any) -> None:
        """Wait for the collective."""
        for handle in handles:
            handle.wait()
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def close(self) -> None:
        """Leave the group."""
        self.distributed.destroy_process_group()


class Group:
    """Rank 0 and the processes of the others."""

    def __init__(self, device_kind: str, ranks: int) -> None:
        self.ranks = ranks
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-group-")
        meet = str(Path(self.folder.name) / "meet")
        self.partners: list[Partner] = []
        role = {"role": "rank", "device_kind": device_kind, "ranks": ranks, "rendezvous": meet}
        for rank in range(1, ranks):
            self.partners.append(Partner(sys.executable, os.environ, {**role, "rank": rank}))
        try:
            self.own = Rank(device_kind, 0, ranks, meet)
            for partner in self.partners:
                partner.hear()
        except (RuntimeError, WorkerError):
            self._end()
            raise

    def lane(self, name: str, message_bytes: int, seed: int) -> Lane:
        """Return a collective; every rank checks its own answer first."""
        for partner in self.partners:
            partner.tell({"do": "load", "name": name, "bytes": message_bytes, "seed": seed, "answer": True})
        self.own.load(name, message_bytes, seed)
        for partner in self.partners:
            partner.hear()
        if self.own.device.type == "cpu":
            self.folder.cleanup()  # gloo has met by now; NCCL may meet again
        own = self.own
        return Lane(own.start, own.wait, own.before, self._run_others)

    def close(self) -> None:
        """End the group and its processes."""
        self._end()
        self.own.close()

    def _run_others(self, calls: int) -> None:
        for partner in self.partners:
            partner.tell({"do": "run", "calls": calls})
        self.own.meet()

    def _end(self) -> None:
        for partner in self.partners:
            partner.close()
        self.folder.cleanup()
