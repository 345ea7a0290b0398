"""Public cases of people who joined unlike chips: the split says what they were told, or found out.

The restated cases are those of `tests/samples/cases/HYB-*.yaml`; here they are planned as splits, with the pools they had.
"""

from typing import Any

import pytest

from core.split import Split, SplitOptions
from services import split

IMAGES: dict[str, Any] = {"schema": 1, "task": "train", "model": {"preset": "resnet-50"}, "batch": 256, "dtype": "fp32"}
SLOW = {"link_bytes_per_s": 1.25e9, "link_latency_s": 1e-4}


def planned(document: dict[str, Any], *pools: str, **options: Any) -> Split:
    return split.plan(document, SplitOptions(pools, **options))


def flags(told: Split) -> set[str]:
    return {verdict.flag for verdict in told.verdicts}


@pytest.mark.parametrize("existing", [
    {"framework": "torch"},  # HYB-01, pytorch/pytorch#29191
    {"framework": "torch", "libraries": ["horovod"]},  # HYB-02, horovod/horovod#1825
])  # fmt: skip
def test_processors_beside_gpus_in_one_step_are_not_worth_it(existing: dict[str, Any]) -> None:
    told = planned({**IMAGES, "existing": existing}, "v100-16=4", "cpu-spr-56c=1", **SLOW)
    assert told.verdict == "single"
    assert told.best_single is not None
    assert told.best_single.pool.accelerator == "v100-16"
    assert "hybrid_sync_dp" in flags(told)


def test_a_tpu_and_a_gpu_do_not_share_one_program() -> None:  # HYB-04, pytorch/xla#4426
    existing = {"framework": "torch-xla"}
    document = {"schema": 1, "task": "train", "model": {"preset": "gpt2-small"}, "batch": 64, "existing": existing}
    told = planned(document, "tpu-v3=4", "v100-16=8", **SLOW)
    assert {"hybrid_sync_dp", "stage_split"} <= flags(told)
    assert "R104" in {verdict.rule for verdict in told.verdicts}


def learning(environment_steps_per_s: float) -> Split:
    document = {
        "schema": 1, "task": "rl", "model": {"preset": "gpt2-small"}, "batch": 256, "length": 512, "dtype": "bf16",
        "rollouts": {"prompt": 64, "output": 256, "environment_steps_per_s": environment_steps_per_s},
    }  # fmt: skip
    return planned(document, "t4=4", "v100-16=4", **SLOW)


def test_slow_environments_hold_up_actor_and_learner_whatever_the_chips() -> None:  # HYB-05, google-deepmind/scalable_agent#14
    slow, fast = learning(2e4), learning(1e9)
    assert slow.seconds is not None
    assert fast.seconds is not None
    assert slow.seconds.mid >= 256 * 256 / 2e4 * 0.999
    assert fast.seconds.mid < slow.seconds.mid
    assert "stage_split" in flags(fast)


def test_actors_and_learner_of_unlike_chips_are_told_to_correct_their_probabilities() -> None:  # HYB-06, InstaDeep
    document = {
        "schema": 1, "task": "rl", "model": {"preset": "gpt2-small"}, "batch": 256, "length": 512, "dtype": "bf16",
        "rollouts": {"prompt": 64, "output": 256},
    }  # fmt: skip
    told = planned(document, "a100-40=8", "tpu-v4=8", **SLOW)
    assert "stage_split" in flags(told)
    assert any("importance weights" in text for text in told.missing)
