"""The workers of one device: one for each runtime, and one more for each setting that a system probe asks for."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from core.device import Device
from core.probe import Probe, Runtime
from core.settings import Settings
from probes.accounting import Account
from probes.environment import Setting, only_device, runtimes_folder, setting_environment, worker_environment
from probes.launcher import Limits, WorkerGone, WorkerHandle, default_interpreter
from probes.messages import Broken, Open, Ready
from probes.system import setting_of

MOST_RESTARTS = 3


@dataclass
class Bench:
    """The worker of one runtime in one setting, and its history."""

    runtime: Runtime
    setting: Setting = field(default_factory=Setting)
    worker: WorkerHandle | None = None
    ready: Ready | None = None
    restarts: int = 0
    held: str = ""
    last_gone: WorkerGone | None = None


class Team:
    """Starts workers, knows which probe belongs to which, and ends them.

    Args:
        device: that they work on.
        benches: of each runtime id, in the plain setting.
        settings: for caches.
        limits: of each worker.
        account: takes the seconds of importing.
    """

    def __init__(
        self, device: Device, benches: dict[str, Bench], settings: Settings, limits: Limits, account: Account
    ) -> None:
        self.device, self.benches, self.settings, self.limits, self.account = device, benches, settings, limits, account
        self.special: dict[tuple[str, Setting], Bench] = {}

    def bench(self, probe: Probe) -> Bench | None:
        """Return the bench of a probe's runtime in the setting that it needs, or None when the runtime is not here."""
        setting, plain = setting_of(probe), self.benches.get(probe.runtime)
        if plain is None or setting == Setting():
            return plain
        return self.special.setdefault((probe.runtime, setting), Bench(plain.runtime, setting))

    def retire(self, needed: set[tuple[str, Setting]]) -> None:
        """End the workers of settings that no probe to come needs."""
        for key, bench in self.special.items():
            if key not in needed and bench.worker is not None:
                bench.worker.close()
                bench.worker = None

    def close(self) -> None:
        """End every worker."""
        for bench in (*self.benches.values(), *self.special.values()):
            if bench.worker is not None:
                bench.worker.close()
                bench.worker = None

    def start(self, benches: list[Bench]) -> None:
        """Start workers and let them import at the same time; an interpreter of the user's is compared in every run."""
        agreed = str(self.settings.home / "cache" / "agreed" / self.device.uuid.replace("/", "_"))
        opened: list[Bench] = []
        since = time.monotonic()
        for bench in benches:
            try:
                bench.worker = WorkerHandle(bench.runtime.interpreter, self._environment(bench), self.limits)
                ours = self._is_ours(bench.runtime.interpreter)
                bench.worker.tell(Open(bench.runtime.id, self.device.kind, agreed if ours else ""))
                opened.append(bench)
            except WorkerGone as gone:
                self.lost(bench, gone)
        for bench in opened:
            assert bench.worker is not None
            try:
                reply = bench.worker.hear(self.limits.open_s)
            except WorkerGone as gone:
                self.lost(bench, gone)
                continue
            if isinstance(reply, Ready):
                bench.ready = reply
            else:
                error = reply.error if isinstance(reply, Broken) else "an unexpected reply"
                bench.worker.close()
                bench.worker, bench.held = None, error
        self.account.add((("import", time.monotonic() - since),), benches[0].runtime.id if len(benches) == 1 else "")

    def _is_ours(self, interpreter: str) -> bool:
        """Whether an interpreter was made by Tandem, from pins that its folder is named after."""
        return interpreter == default_interpreter() or Path(interpreter).is_relative_to(runtimes_folder(self.settings.home))

    def lost(self, bench: Bench, gone: WorkerGone) -> None:
        """Take note of a dead worker; after too many the runtime is held."""
        bench.worker, bench.ready = None, None
        bench.restarts += 1
        if bench.restarts > MOST_RESTARTS:
            bench.held = f"held after {MOST_RESTARTS} restarts; the last worker: {gone.reason}"
        bench.last_gone = gone

    def _environment(self, bench: Bench) -> dict[str, str]:
        run_id = os.environ.get("TANDEM_RUN_ID", "")
        vendor = self.device.board.vendor if self.device.board else ""
        environment = worker_environment(bench.runtime.id, self.device.kind, os.environ, self.settings.home, run_id, vendor)
        if bench.setting.devices < 2:
            environment |= only_device(self.device)
        far = self.benches.get(bench.setting.partner)
        there = far.runtime.interpreter if far else ""
        return environment | setting_environment(bench.setting, self.device.kind, there, self.limits.memory_bytes)
