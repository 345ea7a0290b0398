"""Watches the machine from the parent while a worker is timed: clocks, and why a chip holds them down.

The worker itself looks at nothing: that would be in its samples. A sensor is anything that gives a `Reading`; recorded readings
test the verdict, and a machine without a sensor that moves is not judged by it.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from core.device import Device
from core.statistics import median
from probes.devices.nvidia import load_nvml

EVERY_S = 0.4
LOW_CLOCK = 0.75
"""Share of the default clock below which a chip is throttled (nvbench's limit)."""
HELD_DOWN = {8: "hardware slowdown", 32: "software thermal", 64: "hardware thermal", 128: "power brake"}
"""Bits of NVML's clock event reasons that mean a fault of cooling or supply. A power cap (4) is how such chips run."""
IDLE = 1
MOST_COOLING_S = 20.0
_GRAPHICS, _SM = 0, 1
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
"""The second is its name before driver 535. Source: NVML API reference, clock event reasons."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One look at a chip: its clock and its default clock in Hz, None when unknown, and the reasons, as NVML's bits."""

    clock_hz: float | None
    default_hz: float | None
    reasons: int = 0


class Sensor(Protocol):
    """Whatever can be read a few times a second."""

    def read(self) -> Reading | None:
        """Return a reading, or None when there is nothing to read now."""
        ...


@dataclass(frozen=True, slots=True)
class CpuSensor:
    """The fastest core's clock as the kernel tells it; many virtual machines tell one that never moves."""

    information: Path = Path("/proc/cpuinfo")
    frequencies: Path = Path("/sys/devices/system/cpu")

    def read(self) -> Reading | None:
        """Return clock and base clock; the base is None where neither the kernel nor the name of the model says it."""
        told = [float(path.read_text(encoding="ascii")) * 1e3 for path in self.frequencies.glob("cpu*/cpufreq/scaling_cur_freq")]
        text = self.information.read_text(encoding="utf-8") if self.information.exists() else ""
        told = told or [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*: ([\d.]+)", text, re.MULTILINE)]
        base = self.frequencies / "cpu0" / "cpufreq" / "base_frequency"
        named = re.search(r"^model name.*@ ([\d.]+)GHz", text, re.MULTILINE)
        default = float(base.read_text(encoding="ascii")) * 1e3 if base.exists() else float(named[1]) * 1e9 if named else None
        return Reading(max(told), default) if told else None


@dataclass(frozen=True, slots=True)
class NvidiaSensor:
    """One NVIDIA device, through its driver's management library; what a virtual machine or a partition does not tell is unknown.

    Args:
        nvml: the module `pynvml`, initialised.
        uuid: of the device.
    """

    nvml: Any
    uuid: str

    def read(self) -> Reading | None:
        """Return the SM clock, the default one, and the reasons; None when the driver does not answer."""
        clock = self._ask("nvmlDeviceGetClockInfo", _SM)
        default = self._ask("nvmlDeviceGetDefaultApplicationsClock", _GRAPHICS) or self._ask("nvmlDeviceGetMaxClockInfo", _SM)
        known = (self._ask(name) for name in _REASONS)
        reasons = next((bits for bits in known if bits is not None), None)
        if clock is None and reasons is None:
            return None
        return Reading(clock * 1e6 if clock else None, default * 1e6 if default else None, reasons or 0)

    def _ask(self, name: str, *arguments: int) -> int | None:
        try:
            return int(getattr(self.nvml, name)(self.nvml.nvmlDeviceGetHandleByUUID(self.uuid), *arguments))
        except (self.nvml.NVMLError, AttributeError):
            return None


@cache
def _nvml() -> Any:
    """Return NVML, initialised for as long as this process lives, or None where there is none."""
    try:
        nvml = load_nvml()
    except (ImportError, OSError):
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def sensor_for(device: Device) -> Sensor | None:
    """Return what tells the clock of a device, or None: no clock of a TPU is told, its drift has to do."""
    if device.kind == "cpu":
        return CpuSensor()
    nvml = _nvml() if device.kind == "gpu" and device.uuid.startswith(("GPU-", "MIG-")) else None
    return NvidiaSensor(nvml, device.uuid) if nvml else None


@dataclass
class Watch:
    """Reads a sensor in a thread of the parent while it is entered.

    Args:
        sensor: None watches nothing.
        every_s: seconds between readings, at most half of one.
    """

    sensor: Sensor | None
    every_s: float = EVERY_S
    readings: list[Reading] = field(default_factory=list[Reading])
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.sensor is not None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def _look(self) -> None:
        assert self.sensor is not None
        while True:
            reading = self.sensor.read()
            if reading is not None:
                self.readings.append(reading)
            if self._stop.wait(self.every_s):
                return

    @property
    def throttled(self) -> str:
        """Why the chip was held down while it was watched, or nothing."""
        return held_down(self.readings)

    def cool_down(self, should_stop: Callable[[], bool], most_s: float = MOST_COOLING_S) -> None:
        """Wait until the sensor no longer says that the chip is held down, at most so long."""
        end = time.monotonic() + most_s
        while self.sensor is not None and time.monotonic() < end and not should_stop():
            reading = self.sensor.read()
            if reading is None or not held_down([reading]):
                return
            time.sleep(self.every_s)


def held_down(readings: list[Reading]) -> str:
    """Return why a chip was throttled, or nothing: a bit of `HELD_DOWN` in any reading, or a median clock under 75 %."""
    busy = [reading for reading in readings if not reading.reasons & IDLE]
    bits = [name for bit, name in HELD_DOWN.items() if any(reading.reasons & bit for reading in busy)]
    if bits:
        return ", ".join(bits)
    shares = [r.clock_hz / r.default_hz for r in busy if r.clock_hz and r.default_hz]
    if shares and median(shares) < LOW_CLOCK:
        return f"clock at {median(shares):.0%} of its default"
    return ""


def throttle_doubt(why: str) -> str:
    """Return the warning of a measurement that was throttled, and stayed so after a pause; nothing without a reason."""
    return f"throttled: {why}, also after a pause; degraded" if why else ""
