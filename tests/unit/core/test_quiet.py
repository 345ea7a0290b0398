"""What native code prints is kept off standard output, and what Tandem prints after it is not."""

import subprocess
import sys

CODE = """
import ctypes
from core.quiet import native_output_aside
library = ctypes.CDLL(None)
print('before', flush=True)
with native_output_aside():
    library.printf(b'noise of a library\\n')
print('after')
"""


def test_native_output_goes_to_standard_error_also_when_it_is_buffered() -> None:
    child = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert child.stdout == "before\nafter\n"
    assert child.stderr == "noise of a library\n"


def test_without_standard_output_nothing_happens() -> None:
    closed = "import os; os.close(1); " + "from core.quiet import native_output_aside\nwith native_output_aside(): pass"
    assert subprocess.run([sys.executable, "-c", closed], check=False).returncode in (0, 120)
