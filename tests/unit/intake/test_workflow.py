"""Workflows and portfolios as people write them: the documented examples, and every fault in one line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from core.errors import BadInput
from core.workflow import (
    FormChange,
    Hand,
    Portfolio,
    StageForm,
    TeamOption,
    TeamPoolRequest,
    TeamWork,
    Workflow,
    WorkflowLink,
    WorkflowPool,
    WorkflowStage,
    WorkflowStore,
)
from core.workload import PoolRequest, Total
from intake import team, workflow
from intake.workflow import read_workflow_file, read_workflow_text

DOCS = Path(__file__).parents[3] / "docs" / "workflows.md"
WORKFLOW, PORTFOLIO = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
JAX, TORCH = "jax/bf16", "torch/bf16"


def _workflow() -> Workflow:
    found = read_workflow_text(WORKFLOW)
    assert isinstance(found, Workflow)
    return found


def _portfolio() -> Portfolio:
    found = read_workflow_text(PORTFOLIO)
    assert isinstance(found, Portfolio)
    return found


def test_the_documented_workflow_gives_its_stages() -> None:
    tokenise, finetune, evaluate = _workflow().stages
    assert tokenise == WorkflowStage("tokenise", seconds=(("cpu", 7200.0), ("gpu", 7200.0)), anywhere=True)
    assert finetune.workload == "llama-3-8b:finetune"
    assert finetune.total == Total(tokens=2e9)
    assert finetune.after == (Hand("tokenise", 4e9),)
    assert finetune.forms == (StageForm("tpu", JAX, JAX), StageForm("gpu", TORCH, TORCH))
    assert evaluate.cannot == (("tpu", "the harness needs CUDA"),)
    assert evaluate.after == (Hand("finetune", 1.6e10),)
    assert evaluate.forms == tuple(StageForm(pool, TORCH, "") for pool in ("cpu", "tpu", "gpu"))


def test_the_documented_workflow_gives_its_pools_and_ways() -> None:
    found = _workflow()
    assert found.pools == (
        WorkflowPool("cpu", PoolRequest("cpu:0", 1, 0.0), host=True),
        WorkflowPool("tpu", PoolRequest("tpu-v6e", 16, 2.7)),
        WorkflowPool("gpu", PoolRequest("h100-sxm", 8, 2.5), hours=40.0),
    )
    assert found.links == (WorkflowLink(("tpu", "gpu"), 1.25e9, 0.001, 0.02),)
    assert found.store == WorkflowStore(2.5e9, 2.5e9, 0.09)
    warning = "compare the logits of both before the first side is given up"
    assert found.conversions == (FormChange(JAX, TORCH, 60.0, 1e9, 0.0, warning),)
    assert (found.name, found.objective, found.deadline_h, found.budget_usd) == ("train then serve", "cost", 60.0, None)


def test_the_documented_portfolio_gives_its_workloads_and_pools() -> None:
    found = _portfolio()
    assert found.pools == (
        TeamPoolRequest("ours", PoolRequest("h100-sxm", 16, 0.0), True, ((0.0, 60.0), (72.0, 168.0))),
        TeamPoolRequest("spot", PoolRequest("tpu-v6e", 64, 1.1), False, spot=True),
        TeamPoolRequest("demand", PoolRequest("h100-sxm", 32, 2.9), False, chip_hours=2000.0),
    )
    assert found.works == (
        TeamWork("gpt2-small:train", "gpt2-small:train", Total(tokens=1e10), deadline_h=48.0, priority=3),
        TeamWork("nightly evaluation", options=(TeamOption("ours", 16, 2.0), TeamOption("demand", 32, 2.0)), release_h=20.0,
                 deadline_h=30.0),
        TeamWork("sweep", options=(TeamOption("ours", 8, 40.0), TeamOption("spot", 16, 30.0)), deadline_h=168.0,
                 interruptible=True),
    )  # fmt: skip
    assert (found.objective, found.budget_usd) == ("cost", 5000.0)


def test_every_key_has_its_line_in_the_docs() -> None:
    text = DOCS.read_text(encoding="utf-8")
    keys = {*workflow.KEYS, *workflow.STAGE_KEYS, *workflow.POOL_KEYS}
    keys |= {*team.KEYS, *team.WORK_KEYS, *team.POOL_KEYS, *team.OPTION_KEYS}
    assert sorted(key for key in keys - {"schema"} if f"`{key}`" not in text and f"{key}:" not in text) == []


def test_an_output_may_be_another_for_one_of_its_readers_and_may_stream() -> None:
    stages = (
        "{name: decode, seconds: {a: 1}, bytes: 5.0, streams: true}, {name: train, seconds: {a: 1}, after: [decode]}, "
        "{name: log, seconds: {a: 1}, after: [{stage: decode, bytes: 1, streams: false}]}"
    )
    text = f"{{workflow: w, pools: [{{name: a, accelerator: tpu-v6e, count: 4}}], stages: [{stages}]}}"
    found = read_workflow_text(text)
    assert isinstance(found, Workflow)
    assert [stage.after for stage in found.stages] == [(), (Hand("decode", 5.0, True),), (Hand("decode", 1.0, False),)]


def test_a_pool_without_a_name_is_called_by_its_chips_and_says_how_it_was_understood() -> None:
    found = read_workflow_text("{workflow: w, pools: [v5p-8], stages: [{name: train, seconds: {tpu-v5p=4: 1}}]}")
    assert isinstance(found, Workflow)
    assert found.pools[0].name == "tpu-v5p=4"
    assert any("4 chips" in said for said in found.assumptions)


def test_a_file_is_read_as_its_text_is(tmp_path: Path) -> None:
    path = tmp_path / "week.yaml"
    path.write_text(PORTFOLIO, encoding="utf-8")
    assert read_workflow_file(path) == read_workflow_text(PORTFOLIO)
    with pytest.raises(BadInput, match="no regular file"):
        read_workflow_file(tmp_path)
    with pytest.raises(BadInput, match="a workflow or portfolio file"):
        read_workflow_file(tmp_path / "none")


POOLS = "pools: [{name: a, accelerator: tpu-v6e, count: 4}, {name: b, accelerator: h100-sxm, count: 8}]"
STAGE = "name: s, seconds: {a: 1}"
OWNED = "owned: [{name: a, accelerator: tpu-v6e}]"


@pytest.mark.parametrize(("text", "said"), [
    ("stages: []", "no key 'workflow' and no key 'portfolio'"),
    ("schema: 2, workflow: w", "schema: 2; expected 1"),
    ("workflow: w", "no pools"),
    (f"workflow: w, {POOLS}", "no stages"),
    (f"workflow: w, {POOLS}, stages: [{{seconds: {{a: 1}}}}]", "expected a name"),
    (f"workflow: w, {POOLS}, stages: [{{name: s}}]", "expected seconds on pools, or a workload"),
    (f"workflow: w, {POOLS}, stages: [{{name: s, seconds: {{c: 1}}}}]", "stages[0].seconds: unknown key 'c'"),
    (f"workflow: w, {POOLS}, stages: [{{name: s, seconds: {{a: fast}}}}]", "stages[0].seconds.a: 'fast'"),
    (f"workflow: w, {POOLS}, stages: [{{name: s, seconds: {{a: -1}}}}]", "stages[0].seconds.a: -1"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, cannot: {{a: no}}}}]", "expected a pool without seconds"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, cannot: {{b: 3}}}}]", "expected the reason"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, total: {{steps: 3}}}}]", "a workload beside it"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, after: [t]}}]", "unknown stage 't'"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, after: [{{bytes: 3}}]}}]", "the name of a stage"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}, after: [s]}}]", "wait for each other: s after s"),
    (f"workflow: w, {POOLS}, stages: [{{{STAGE}}}, {{{STAGE}}}]", "every name once"),
    (f"workflow: w, {POOLS}, links: [{{between: [a], gbps: 1}}], stages: [{{{STAGE}}}]", "expected two pools"),
    (f"workflow: w, {POOLS}, links: [{{between: [a, c], gbps: 1}}], stages: [{{{STAGE}}}]", "unknown pool 'c'"),
    (f"workflow: w, {POOLS}, links: [{{between: [a, b]}}], stages: [{{{STAGE}}}]", "expected gbps"),
    (f"workflow: w, {POOLS}, store: {{gbps_up: 1}}, stages: [{{{STAGE}}}]", "gbps_up and gbps_down"),
    (f"workflow: w, {POOLS}, conversions: [{{from: x}}], stages: [{{{STAGE}}}]", "from and to"),
    ("workflow: w, pools: [{name: a, accelerator: h1000}], stages: []", "pools[0].accelerator"),
    ("workflow: w, pools: [{name: a, accelerator: tpu-v6e, host_of: z}], stages: []", "pools[0].host_of: unknown pool 'z'"),
    ("portfolio: p", "expected a list owned, a list rented, or both"),
    ("portfolio: p, rented: [{name: a, accelerator: h1000}]", "rented[0].accelerator"),
    (f"portfolio: p, {OWNED}", "no workloads"),
    ("portfolio: p, owned: [{name: a, accelerator: tpu-v6e, windows_h: [[3, 1]]}]", "a stop after its start"),
    ("portfolio: p, owned: [{name: a, accelerator: tpu-v6e, windows_h: [[0, 4], [3, 6]]}]", "ascend and are apart"),
    (f"portfolio: p, {OWNED}, workloads: [{{name: x}}]", "hours for every option"),
    (f"portfolio: p, {OWNED}, workloads: [{{hours: {{a: 1}}}}]", "a workload or a name"),
    (f"portfolio: p, {OWNED}, workloads: [{{name: x, options: [{{pool: q, hours: 1}}]}}]", "unknown pool 'q'"),
    (f"portfolio: p, {OWNED}, workloads: [{{name: x, hours: {{a: 1}}, release_h: 5, deadline_h: 4}}]", "more than its release_h"),
    (f"portfolio: p, {OWNED}, workloads: [{{name: x, hours: {{a: 1}}, priority: 0}}]", "priority"),
    (f"portfolio: p, {OWNED}, rented: [{{name: a, accelerator: tpu-v6e}}]", "every name once"),
])  # fmt: skip
def test_what_cannot_be_used_is_said_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_workflow_text(f"{{{text}}}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [None, True, 3, -1, "x", "", [], [[]], [{}], {}, {"a": {}}, {"a": None}, [None], ["a", "a"], "\x00"]
)
def test_whatever_stands_under_a_key_is_taken_or_refused_and_never_a_crash(value: Any) -> None:
    for text in (WORKFLOW, PORTFOLIO):
        whole: Any = YAML(typ="safe", pure=True).load(text)
        stages = "stages" if "stages" in whole else "workloads"
        pools = "pools" if "pools" in whole else "owned"
        places = [(whole, key) for key in list(whole)]
        places += [(whole[stages][1], key) for key in ("name", "after", "seconds", "hours", "forms", "bytes", "total", "options")]
        places += [(whole[pools][0], key) for key in ("name", "count", "windows_h", "host", "hours")]
        for holder, key in places:
            kept = dict(holder)
            holder[key] = value
            try:
                found: Workflow | Portfolio | str = read_workflow_text(json.dumps(whole))
            except BadInput as error:
                found = str(error)
            assert isinstance(found, Workflow | Portfolio) or "\n" not in found
            holder.clear()
            holder.update(kept)
