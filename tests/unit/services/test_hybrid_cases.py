"""Public cases of people who joined unlike chips: the split says what they were told, or found out.

The restated cases are those of `tests/samples/cases/HYB-*.yaml`; here they are planned as splits, with the pools they had.
"""

from pathlib import Path
from typing import Any

import pytest

from core.split import Split, SplitOptions
from services import split, workflows

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


def handed_over(tmp_path: Path, job: str, first: str, second: str) -> Split:
    """Plan a workflow that trains on one pool and uses the model on another."""
    (tmp_path / "job.yaml").write_text(f"schema: 1\ntask: train\nbatch: 64\n{job}", encoding="utf-8")
    path = tmp_path / "flow.yaml"
    path.write_text(
        "schema: 1\nworkflow: train and use\npools:\n"
        f"  - {{name: first, {first}, price_usd_per_h: 1}}\n  - {{name: second, {second}, price_usd_per_h: 1}}\n"
        "links: [{between: [first, second], gbps: 10}]\nstages:\n"
        "  - {name: train, workload: job.yaml, total: {steps: 100}, seconds: {first: 100}, cannot: {second: no}, bytes: 1.0e8}\n"
        "  - {name: use, after: [train], seconds: {second: 10}, cannot: {first: not here}}\n",
        encoding="utf-8",
    )
    return workflows.plan_file(str(path))


@pytest.mark.parametrize(("job", "first", "second"), [
    # HYB-07, tensorflow/tpu#267: a graph of TPU operations does not open on a GPU
    ("model: {preset: resnet-50}\nexisting: {framework: tensorflow, libraries: [tf-estimator]}\n",
     "accelerator: tpu-v2, count: 4", "accelerator: v100-16"),
    # HYB-09, google/orbax#646: a checkpoint names the devices that wrote it
    ("model: {preset: mlp}\nexisting: {framework: jax, libraries: [orbax-checkpoint]}\n",
     "accelerator: v100-16", "accelerator: cpu-spr-56c"),
    # HYB-08, google/orbax#648: 64 chips wrote what 2 could not read
    ("model: {preset: llama-3-8b}\nexisting: {framework: jax, libraries: [orbax-checkpoint]}\n",
     "accelerator: tpu-v5p, count: 64", "accelerator: tpu-v5p, count: 2"),
])  # fmt: skip
def test_a_model_that_is_used_on_other_chips_is_handed_over_in_a_form_that_names_none(
    tmp_path: Path, job: str, first: str, second: str
) -> None:
    told = handed_over(tmp_path, job, first, second)
    assert "export_portability" in flags(told)
    assert "hybrid_sync_dp" not in flags(told), "stages share no step"


def test_what_is_trained_on_tpus_and_used_on_gpus_is_told_how(tmp_path: Path) -> None:
    told = handed_over(tmp_path, "model: {preset: gpt2-small}\n", "accelerator: tpu-v6e, count: 4", "accelerator: h100-sxm")
    assert "R122" in {verdict.rule for verdict in told.verdicts}


def test_stages_on_one_family_of_chips_hear_nothing_of_it(tmp_path: Path) -> None:
    told = handed_over(tmp_path, "model: {preset: gpt2-small}\n", "accelerator: h100-sxm", "accelerator: a100-80")
    assert told.verdicts == ()
