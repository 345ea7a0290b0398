"""What retired frameworks cannot do on GPUs that came after their last build."""

import pytest

from advisor.rules.frameworks import mxnet_has_no_backend
from tests.unit.advisor.cases import chip
from tests.unit.advisor.test_rules import case


@pytest.mark.parametrize("key", ["b200", "gb200", "b300", "gb300", "rtx5090", "rtxpro6000"])
def test_mxnet_has_no_build_for_blackwell(key: str) -> None:
    found = mxnet_has_no_backend(case("mxnet", chip(key)))
    assert found is not None
    assert found.effect == "exclude"
    assert "ends with Hopper" in found.reason


@pytest.mark.parametrize("key", ["h100-sxm", "a100-80", "t4"])
def test_mxnet_runs_up_to_hopper(key: str) -> None:
    assert mxnet_has_no_backend(case("mxnet", chip(key))) is None
