"""Rules about a workload wherever it runs: each fires where it should and is silent where it should be."""

import pytest

from advisor.rules.case import Code
from tests.unit.advisor.rules.subjects import JOB_RULES, LLAMA, MLP, RESNET, WRITES, code, said

RL = {**MLP, "task": "rl"}
WORDS = {**LLAMA, "task": "rl"}
GPT = {"model": {"preset": "gpt2-small"}, "batch": 512, "length": 1024, "dtype": "bf16", "task": "train"}
HUGE = {"model": {"blocks": [{"kind": "embedding_bag", "tables": 1, "rows": 1_000_000_000, "width": 1000}]}, "batch": 64,
    "dtype": "fp32"}
TPU, H100, CPU = ({"accelerator": key, "count": 8} for key in ("tpu-v6e", "h100-sxm", "cpu-spr-56c"))
FIRES: dict[str, Code] = {
    "R041": code(GPT),
    "R049": code(total={"tokens": 1e12}),
    "R050": code(existing={"custom_kernels": ["triton"]}),
    "R053": code(WRITES),
    "R054": code(WRITES),
    "R055": code(WRITES),
    "R056": code(WRITES),
    "R066": code(pools=[{"accelerator": "mi300x"}, H100]),
    "R068": code({**WRITES, "model": {"params": 7e10}}),
    "R101": code(objective="cost"),
    "R115": code(RL, existing={"libraries": ["gymnasium"]}),
    "R116": code(RL, existing={"libraries": ["brax"]}),
    "R117": code(RL, pools=[TPU]),
    "R118": code(WORDS),
    "R120": code(RL, existing={"libraries": ["isaacgym"]}),
    "R121": code(RESNET, existing={"libraries": ["nvidia-dali"]}),
    "R130": code(existing={"libraries": ["optuna"]}),
    "R139": code(HUGE),
    "R140": code(existing={"ops": ["BCOO"]}),
    "R164": code(RESNET, existing={"ops": ["random_zoom", "string-lookup"]}),
    "R173": code({**MLP, "model": {"preset": "mlp", "inputs": 4, "hidden": [8], "classes": 1}}, existing={"framework": "keras"}),
    "R182": code(objective="cost", pools=[TPU, H100]),
    "R183": code(pools=[{"accelerator": "v4-8"}]),
    "R203": code(existing={"framework": "mxnet"}),
    "R208": code(existing={"libraries": ["orbax-checkpoint"]}, pools=[{"accelerator": "tpu-v5p", "count": 64},
                                                                     {"accelerator": "tpu-v5p", "count": 4}]),
}
SILENT: dict[str, tuple[Code, ...]] = {
    "R041": (code(), code(RESNET)),
    "R049": (code(), code(total={"steps": 10}), code(total={"tokens": 1e12}, existing={"ops": ["nonzero"]})),
    "R050": (code(existing={"custom_kernels": ["pallas"]}), code(existing={"custom_kernels": ["triton"]}, pools=[H100])),
    "R053": (code(), code({**WRITES, "dtype": "int8"})),
    "R054": (code(), code({**WRITES, "batch": 512})),
    "R055": (code(), code({**RESNET, "task": "infer"})),
    "R056": (code(), code({**WRITES, "batch": 1, "prompt": 128})),
    "R066": (code(), code(pools=[{"accelerator": "h200"}, H100])),
    "R068": (code(WRITES), code({**LLAMA, "model": {"params": 7e10}})),
    "R101": (code(), code(objective="cost", pools=[H100])),
    "R115": (code(existing={"libraries": ["gymnasium"]}), code(RL), code(RL, existing={"libraries": ["gymnasium", "brax"]})),
    "R116": (code(existing={"libraries": ["brax"]}), code(RL)),
    "R117": (code(RL, pools=[H100]), code(RL, pools=[TPU], existing={"libraries": ["brax"]}), code(RL)),
    "R118": (code(), code(RL)),
    "R120": (code(RL), code(existing={"libraries": ["isaacgym"]})),
    "R121": (code(RESNET), code({**RESNET, "task": "infer"}, existing={"libraries": ["nvidia-dali"]})),
    "R130": (code(), code(existing={"libraries": ["wandb"]})),
    "R139": (code(), code({**MLP, "model": {"preset": "dlrm-small"}})),
    "R140": (code(), code(existing={"ops": ["matmul"]})),
    "R164": (code(existing={"ops": ["random_normal"]}), code()),
    "R173": (code(RESNET, existing={"framework": "keras"}), code(MLP, existing={"framework": "jax"})),
    "R182": (code(objective="cost", pools=[TPU]), code(pools=[TPU, H100])),
    "R183": (code(pools=[{"accelerator": "v5litepod-8"}]), code(pools=[{"accelerator": "tpu-v4", "count": 4}])),
    "R203": (code(existing={"framework": "torch"}),),
    "R208": (code(existing={"libraries": ["orbax-checkpoint"]}, pools=[{"accelerator": "tpu-v5p", "count": 64}]),
             code(pools=[{"accelerator": "tpu-v5p", "count": 64}, {"accelerator": "tpu-v5p", "count": 4}])),
}


@pytest.mark.parametrize("identity", sorted(FIRES))
def test_a_rule_fires_on_what_it_is_about(identity: str) -> None:
    found = said(identity, FIRES[identity])
    assert found is not None
    assert found.effect in JOB_RULES[identity].facts.effects


@pytest.mark.parametrize(("identity", "silent"), [(key, one) for key, found in SILENT.items() for one in found])
def test_a_rule_is_silent_on_everything_else(identity: str, silent: Code) -> None:
    assert said(identity, silent) is None


def test_every_rule_of_a_workload_fires_somewhere_and_is_silent_somewhere() -> None:
    assert set(FIRES) == set(SILENT) == set(JOB_RULES)


def reason(identity: str, subject: Code) -> str:
    found = said(identity, subject)
    assert found is not None
    return found.reason


def test_decoding_is_bound_by_weights_and_cache_over_the_memory_rate() -> None:
    # Llama 3 8B: 8.03 billion weights of 2 bytes; 4 sequences x 1,089 positions x 2 x 8 x 128 x 32 layers x 2 bytes
    weights, cache = 8.03e9 * 2, 4 * 1089 * 2 * 8 * 128 * 32 * 2
    assert f"{(weights + cache) / 1e9:.3g} ms at least" in reason("R054", FIRES["R054"])


def test_a_model_of_70b_needs_a_chip_of_more_than_141_gb() -> None:
    told = reason("R068", FIRES["R068"])
    assert "mi300x" in told
    assert "h100-sxm" not in told
    assert "rubin" not in told


def test_a_pushed_model_of_8b_is_16_gb_and_takes_two_thirds_of_a_second() -> None:
    assert "0.64 s at 25 GB/s" in reason("R118", FIRES["R118"])


def test_a_vocabulary_is_padded_to_the_next_multiple_of_64() -> None:
    assert "from 50,257 to 50,304" in reason("R041", FIRES["R041"])


def test_a_name_that_counts_cores_is_told_with_its_chips() -> None:
    assert reason("R183", FIRES["R183"]).startswith("v4-8 has 4 chips, its name counts 8 cores")
