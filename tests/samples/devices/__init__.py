"""Recorded machines: what NVML, amdsmi, nvidia-smi and the kernel's files say, written from their documentation, and played back.

Errors are raised with the real codes, NVML's by the real classes of nvidia-ml-py; a function that the real module lacks is
refused, so that a misspelt name cannot pass.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml

FOLDER = Path(__file__).parent
NOT_SUPPORTED = 3


def recorded(name: str) -> Any:
    """Return one recording."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def lay_out(root: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Path:
    """Write the files and links of a machine below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, target in (links or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    return root


class Nvml:
    """Plays a recording as the module `pynvml`: `system` by function, `devices` by function, `{"error": N}` raises code N."""

    NVMLError = pynvml.NVMLError

    def __init__(self, said: Any) -> None:
        self._said = said
        self.shut_down = 0

    def __getattr__(self, name: str) -> Any:
        if name in self._said.get("unknown", ()):
            raise AttributeError(name)
        assert hasattr(pynvml, name), f"nvidia-ml-py has no {name}"
        return lambda *arguments: self._play(name, arguments)

    def _play(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlShutdown":
            self.shut_down += 1
            return None
        if name == "nvmlDeviceGetCount":
            return len(self._said["devices"])
        if name == "nvmlDeviceGetHandleByIndex":
            return self._value(self._said["devices"][arguments[0]])
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            parts = arguments[0]["instances"]
            return parts[arguments[1]] if arguments[1] < len(parts) else self._value({"error": pynvml.NVML_ERROR_NOT_FOUND})
        source = arguments[0] if arguments else self._said["system"]
        value = source.get(name, {"error": NOT_SUPPORTED})
        if len(arguments) > 1 and isinstance(value, dict) and "error" not in value:
            value = value[str(arguments[1])]
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"error"}:
            raise pynvml.NVMLError(value["error"])
        if isinstance(value, dict) and set(value) == {"bytes"}:
            return value["bytes"].encode()
        if isinstance(value, dict) and "nvmlDeviceGetName" not in value:
            return SimpleNamespace(**{name: self._value(item) for name, item in value.items()})
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [self._value(item) for item in value]
        return value


class AmdSmiException(Exception):
    """Base of amdsmi's exceptions."""


class AmdSmiLibraryException(AmdSmiException):
    """As in amdsmi_exception.py: a status code and its words."""

    def __init__(self, code: int) -> None:
        super().__init__(f"Error code: {code}")
        self.err_code = code

    def get_error_code(self) -> int:
        return self.err_code

    def get_error_info(self) -> str:
        return f"AMDSMI status {self.err_code}"


class AmdSmi:
    """Plays a recording as the module `amdsmi`."""

    AmdSmiException = AmdSmiException
    AmdSmiLibraryException = AmdSmiLibraryException
    AmdSmiClkType = SimpleNamespace(GFX="GFX", MEM="MEM")
    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT="HOTSPOT")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="CURRENT")

    def __init__(self, said: Any) -> None:
        self._said = said

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("amdsmi_"):
            raise AttributeError(name)
        return lambda *arguments: self._play(name, arguments)

    def _play(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "amdsmi_get_processor_handles":
            return self._said["devices"]
        value = (arguments[0] if arguments else self._said["system"]).get(name, {"error": 2})
        if len(arguments) == 2:
            value = value.get(arguments[1], value)
        if isinstance(value, dict) and set(value) == {"error"}:
            raise AmdSmiLibraryException(value["error"])
        return value
