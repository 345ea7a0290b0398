"""NVIDIA's management library, as far as clocks go, loaded without any package: the driver brings it.

Every call may fail (virtual machines, MIG slices, old drivers); whatever fails is unknown.
Source: NVML API reference, nvmlDeviceGetClockInfo, nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetMaxClockInfo,
nvmlDeviceGetCurrentClocksEventReasons (nvmlDeviceGetCurrentClocksThrottleReasons before driver 535).
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

GRAPHICS, SM = 0, 1
_FILE = "libnvidia-ml.so.1"


@dataclass(frozen=True, slots=True)
class NvidiaLibrary:
    """The loaded library.

    Args:
        library: a `ctypes.CDLL`, or what answers like one.
    """

    library: Any

    @classmethod
    def load(cls) -> "NvidiaLibrary | None":
        """Return the library when the driver is there and answers."""
        return _load()

    def clock_mhz(self, uuid: str) -> int | None:
        """Return the clock of the multiprocessors now."""
        return self._number("nvmlDeviceGetClockInfo", uuid, SM)

    def default_mhz(self, uuid: str) -> int | None:
        """Return the default clock, or the highest one where no default is told."""
        default = self._number("nvmlDeviceGetDefaultApplicationsClock", uuid, GRAPHICS)
        return default or self._number("nvmlDeviceGetMaxClockInfo", uuid, SM)

    def reasons(self, uuid: str) -> int | None:
        """Return the bits that say why the clock is where it is."""
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            found = self._call(name, uuid, ctypes.c_ulonglong())
            if found is not None:
                return found
        return None

    def _number(self, name: str, uuid: str, kind: int) -> int | None:
        return self._call(name, uuid, ctypes.c_uint(), ctypes.c_uint(kind))

    def _call(self, name: str, uuid: str, result: Any, *between: Any) -> int | None:
        function = getattr(self.library, name, None)
        handle = ctypes.c_void_p()
        if function is None or self.library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) != 0:
            return None
        return int(result.value) if function(handle, *between, ctypes.byref(result)) == 0 else None


@cache
def _load() -> NvidiaLibrary | None:
    try:
        library = ctypes.CDLL(_FILE)
    except OSError:
        return None
    return NvidiaLibrary(library) if library.nvmlInit_v2() == 0 else None
