"""What it costs to ask every rule about every runtime on every accelerator: counted in calls, not in seconds."""

import catalog
from advisor.rules.case import Code
from advisor.screening import screen
from core.probe import Runtime
from tests.calls import calls_of
from tests.unit.advisor.rules.subjects import code

MOST_CALLS = 60_000
"""About 30 ms of one core."""


def screen_everything(about: Code) -> int:
    fresh = Code(**{name: getattr(about, name) for name in about.__slots__ if name != "told"})
    runtimes = [Runtime(one.id, one.framework, one.mode) for one in catalog.runtime_specs().values()]
    return sum(
        len(screen(fresh.workload, fresh, runtime, chip.kind, chip, key).verdicts)
        for runtime in runtimes
        for key, chip in catalog.accelerators().items()
    )


def test_screening_all_pairs_of_a_troubled_workload_stays_cheap() -> None:
    existing = {"libraries": ["deepspeed", "torch_xla", "gym"], "ops": ["nonzero"], "framework": "torch", "distinct_shapes": 30}
    pools = [{"accelerator": "tpu-v6e", "count": 64}, {"accelerator": "h100-sxm", "count": 16}]
    about = code(existing=existing, pools=pools)
    assert screen_everything(about) > 1000
    assert calls_of(lambda: screen_everything(about)) < MOST_CALLS


def test_what_is_asked_once_for_a_chip_is_the_same_for_every_runtime() -> None:
    about = code(pools=[{"accelerator": "l40s", "count": 4}])
    chip = catalog.accelerator("l40s")
    told = {
        tuple(one.rule for one in screened.verdicts if one.rule == "R081")
        for name in ("jax", "torch-eager", "mxnet")
        for screened in [screen(about.workload, about, Runtime(name, name, "jit"), "gpu", chip, "l40s")]
    }
    assert told == {("R081",)}


def test_a_factor_that_begins_at_a_size_of_pool_spares_smaller_ones() -> None:
    served = {
        "model": {"params": 7e10}, "task": "serve", "batch": 8, "prompt": 1024, "output": 128, "dtype": "int4",
        "existing": {"framework": "torch", "libraries": ["vllm"]},
        "pools": [{"accelerator": "a10g", "count": 4}, {"accelerator": "a10g", "count": 8}],
    }
    about = code(served)
    chip = catalog.accelerator("a10g")
    screened = screen(about.workload, about, Runtime("torch-compile", "torch", "compile"), "gpu", chip, "a10g")
    assert (5, 0.5) in screened.factors
    assert screened.penalty_of(8) == 0.5 * screened.penalty_of(4)
    assert screened.penalty == screened.penalty_of(1) == screened.penalty_of(4)
