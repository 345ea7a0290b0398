"""The suite is dealt out in whole groups, each file one, and each runtime of the contract of runtimes one."""

import pytest

from tests.conftest import group_of


@pytest.mark.parametrize(("nodeid", "group"), [
    ("tests/unit/core/test_codec.py::test_x", "tests/unit/core/test_codec.py"),
    ("tests/unit/core/test_codec.py::test_x[a-b]", "tests/unit/core/test_codec.py"),
    ("tests/unit/core/test_codec.py::test_x[who@where]", "tests/unit/core/test_codec.py"),
    ("tests/contracts/test_runtimes_agree.py::test_x[jax@-mlp]", "tests/contracts/test_runtimes_agree.py[jax"),
    ("tests/contracts/test_runtimes_agree.py::test_y[tf-xla@-softmax]", "tests/contracts/test_runtimes_agree.py[tf-xla"),
])
def test_a_test_belongs_to_its_file_or_to_a_parameter_that_says_so(nodeid: str, group: str) -> None:
    assert group_of(nodeid) == group
