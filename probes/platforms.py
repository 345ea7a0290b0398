"""Platform: the arrays of a runtime lie where the probe was asked to run, else nothing is measured.

Frameworks that find no accelerator fall back to the processor with a line in a log at most.
"""

from typing import Any

from core.errors import WorkerError

ALIKE = {"cpu": ("cpu",), "gpu": ("gpu", "cuda", "rocm"), "tpu": ("tpu", "xla:tpu")}


def assert_platform(asked: str, backend: Any) -> None:
    """Hold a backend to the kind of device that was asked for.

    Args:
        asked: `cpu`, `gpu` or `tpu`.
        backend: its `platform()` says where its arrays lie; one without it has asserted its platform when it was opened.

    Raises:
        WorkerError: it fell back to another platform.
    """
    tell = getattr(backend, "platform", None)
    got = str(tell()).lower() if tell else asked
    if got not in ALIKE.get(asked, (asked,)):
        raise WorkerError(f"got arrays on {got}; expected {asked}: a silent fall-back; install the build for it")
