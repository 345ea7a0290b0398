"""Advice over the whole catalog costs no more than a page may wait; `bench/speed.py` bounds its seconds."""

from dataclasses import replace

import catalog
from advisor import Question, advise
from core.device import Pool
from tests.calls import calls_of
from tests.unit.advisor.cases import CPU, TODAY, runtime, transformer

RUNTIMES = ("jax", "torch-eager", "torch-compile", "tf-graph", "tf-xla", "keras-jax", "keras-tensorflow", "keras-torch")
CALLS = 700_000


def asked() -> Question:
    layer = transformer(64, 2048, 2048, 3).blocks[0]
    blocks = tuple(replace(layer, name=f"stage {number}") for number in range(10))
    workload = replace(transformer(64, 2048, 2048), blocks=blocks)
    pools = tuple(Pool(key, count, chip.kind, 2.0 * count) for key, chip in catalog.accelerators().items() for count in (1, 4, 8))
    return Question(workload, pools, (CPU,), tuple(runtime(identity) for identity in RUNTIMES), (), "time", TODAY)


def test_what_eight_runtimes_on_all_chips_in_three_sizes_cost_in_calls() -> None:
    question = asked()
    assert len(advise(question).ranked) > 400
    assert calls_of(lambda: advise(question)) < CALLS
