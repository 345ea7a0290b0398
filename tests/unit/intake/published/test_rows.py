"""Tables of other people: every spelling that they may use is understood or refused by name, and nothing ends in a trace."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.sketch import DECODE, FORWARD, PREFILL, SERVING, TRAINING
from intake.published import read_runs
from intake.published.checks import COLUMNS
from intake.published.reference import target_of
from intake.published.rows import NEEDED
from intake.published.spelling import accelerator_key, framework_of, group_of, number, precision_of
from tests.unit.intake.published.tables import SERVING as SERVED
from tests.unit.intake.published.tables import TRAINING as TRAINED
from tests.unit.intake.published.tables import one, table

NUMBERS = ("params_b", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "vocab", "moe_experts", "moe_topk", "seq_len",
           "global_batch", "per_device_batch", "n_devices", "value")  # fmt: skip


@pytest.mark.parametrize(("name", "key", "chips"), [
    ("H100", "h100-sxm", None), ("H100 SXM", "h100-sxm", None), ("H100-80GB", "h100-sxm", None),
    ("NVIDIA H100", "h100-sxm", None),
    ("NVIDIA H100 80GB HBM3", "h100-sxm", None), ("H100 PCIe", "h100-pcie", None), ("A100", "a100-80", None),
    ("A100 80GB", "a100-80", None), ("A100-SXM4-40GB", "a100-40", None), ("V100", "v100-16", None),
    ("Tesla V100", "v100-16", None),
    ("V100-32GB", "v100-32", None), ("mi300x", "mi300x", None), ("AMD Instinct MI300X", "mi300x", None),
    ("Gaudi 3", "gaudi3", None),
    ("TPU v5p", "tpu-v5p", None), ("tpu-v6e", "tpu-v6e", None), ("Trillium", "tpu-v6e", None), ("v5e", "tpu-v5e", None),
    ("TPU v4", "tpu-v4", None), ("Ironwood", "tpu-v7", None), ("trn2", "trainium2", None), ("v5p-128", "tpu-v5p", 64),
    ("v5litepod-16", "tpu-v5e", 16), ("GB200 NVL72", "gb200", None), ("RTX 4090", "rtx4090", None),
])  # fmt: skip
def test_an_accelerator_is_known_by_what_tables_call_it(name: str, key: str, chips: int | None) -> None:
    assert accelerator_key(name) == (key, chips)


@pytest.mark.parametrize("name", ["H20", "abacus", "", "TPU", "v5p-7", "x" * 500])
def test_an_accelerator_that_nobody_knows_is_refused_by_name(name: str) -> None:
    run = one(TRAINED, accelerator=name)
    assert run.setup is None
    assert run.refusal.startswith("got ")
    assert name[:40] in run.refusal


@pytest.mark.parametrize(("text", "dtype"), [
    ("BF16", "bf16"), ("bfloat16", "bf16"), ("fp16-mixed", "fp16"), ("mixed fp16", "fp16"), ("float32", "fp32"),
    ("fp32 (TF32)", "tf32"),
    ("TF32", "tf32"), ("FP8-E4M3", "fp8"), ("fp8 / bf16", "fp8"), ("mxfp8", "fp8"), ("NVFP4", "fp4"), ("AWQ", "int4"),
    ("W8A8", "int8"),
    ("", None), ("mixed", None), ("amp", None), ("posit8", "posit8"),
])  # fmt: skip
def test_a_precision_is_known_by_what_tables_call_it(text: str, dtype: str | None) -> None:
    assert precision_of(text) == dtype


@pytest.mark.parametrize(("text", "stack"), [
    ("PyTorch", "torch"), ("pytorch 2.3.1", "torch"), ("pytorch/fsdp", "torch/fsdp"), ("torch_xla", "torch/xla"),
    ("vLLM", "torch/vllm"),
    ("sglang", "torch/sglang"), ("jax/levanter", "jax/levanter"), ("MaxText", "jax/maxtext"), ("Megatron-LM", "torch/megatron"),
    ("TensorRT-LLM 0.9", "trtllm"), ("TensorFlow 2", "tensorflow"), ("jax/t5x", "jax/t5x"),
    ("pytorch/flash-attn2", "torch/flash-attn2"),
    ("keras", "tensorflow+keras"), ("", "unknown"), ("2.1", "2.1"), ("jetstream/pytorch", "jetstream/torch"),
])  # fmt: skip
def test_a_framework_is_known_by_what_tables_call_it(text: str, stack: str) -> None:
    assert framework_of(text) == stack


@pytest.mark.parametrize(("task", "group", "regime"), [
    ("train_pretrain", "training", TRAINING), ("Training", "training", TRAINING), ("finetune", "training", TRAINING),
    ("train_lora", "training", TRAINING), ("gnn", "training", TRAINING), ("rec_train", "training", TRAINING),
    ("infer_prefill", "inference", PREFILL), ("infer_decode", "inference", DECODE), ("infer_serve", "inference", SERVING),
    ("serving", "inference", SERVING), ("vision_infer", "inference", FORWARD), ("inference", "inference", FORWARD),
])  # fmt: skip
def test_a_task_is_known_by_what_tables_call_it(task: str, group: str, regime: str) -> None:
    assert group_of(task) == group
    found = one(TRAINED, task=task, metric="step_time_s", value="2").setup
    assert found is not None
    assert found.regime == regime


@pytest.mark.parametrize("task", ["", "microbench", "benchmark"])
def test_a_task_that_is_none_is_refused_and_counted(task: str) -> None:
    run = one(TRAINED, task=task)
    assert (run.group, run.setup) == ("other", None)
    assert run.refusal.startswith("got ")


@pytest.mark.parametrize(("text", "value"), [("1,024", 1024.0), ("12,345.5", 12345.5), ("1e3", 1000.0), ("1,02", None),
("", None),
                                             (None, None), ("8 (2x4)", None)])  # fmt: skip
def test_numbers_may_have_their_thousands_apart(text: str | None, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize("column", NUMBERS)
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-3", "1e300", "1e999"])
@pytest.mark.parametrize("row", [TRAINED, SERVED], ids=["training", "serving"])
def test_a_number_that_no_run_has_is_refused_by_its_column(row: dict[str, str], column: str, text: str) -> None:
    refusal = one(row, **{column: text}).refusal
    assert refusal.startswith("got ")
    assert text in refusal
    assert column in refusal


@pytest.mark.parametrize("column", ["seq_len", "global_batch", "per_device_batch", "n_devices", "value"])
def test_an_amount_of_nothing_is_refused(column: str) -> None:
    run = one(TRAINED, **{column: "0"})
    assert run.seconds is None
    assert run.refusal


@pytest.mark.parametrize("text", ["fast", "", "~7000"])
def test_a_value_in_words_is_refused_while_other_runs_are_read(text: str) -> None:
    first, second = read_runs(table(TRAINED | {"value": text}, TRAINED | {"id": "new-2"}))
    assert (first.seconds, bool(first.refusal)) == (None, True)
    assert second.seconds is not None


def test_a_bad_figure_does_not_hide_a_good_one_of_the_same_run() -> None:
    (run,) = read_runs(table(TRAINED | {"value": "nan"}, TRAINED | {"metric": "step_time_s", "value": "4.5"}))
    assert run.seconds == 4.5


@pytest.mark.parametrize(("metric", "value", "seconds"), [
    ("step_time_s", "2.5", 2.5), ("latency_ms", "2500", 2.5), ("tokens_per_s_per_device", "1000", 64 * 4096 / 8000),
    ("tokens_per_s_total", "1000", 64 * 4096 / 1000), ("samples_per_s", "128", 0.5),
])  # fmt: skip
def test_a_figure_becomes_the_seconds_of_a_step(metric: str, value: str, seconds: float) -> None:
    assert one(TRAINED, metric=metric, value=value).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("framework", "date", "half"), [("pytorch/nemo", "2025-09", 1.0), ("jax/maxtext", "2025-06", 1.0),
                                                         ("jax/maxtext", "2025-09", 0.5)])  # fmt: skip
def test_utilisations_count_flops_as_their_source_does(framework: str, date: str, half: float) -> None:
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    token = 6 * (40 * layer + 4096 * 128256) + 3 * 40 * 4 * 4096 * 4096 * half
    rate = 0.4 * 989.4e12 * 8
    found = one(TRAINED, framework=framework, date=date, metric="mfu", value="0.4").seconds
    assert found == pytest.approx(64 * 4096 * token / rate, rel=0.01)
    told = one(TRAINED, framework=framework, date=date, metric="tflops_per_device", value="395.76").seconds
    assert told == pytest.approx(found, rel=0.01)


def test_a_utilisation_in_per_cent_is_asked_to_be_a_fraction() -> None:
    assert "divide a percentage by 100" in one(TRAINED, metric="mfu", value="42").refusal


def test_a_metric_that_is_none_is_refused_with_those_that_are() -> None:
    assert "got the metric 'speed'; expected one of step_time_s, " in one(TRAINED, metric="speed").refusal


def test_generation_takes_its_prompt_and_output_from_the_notes() -> None:
    found = one(SERVED).setup
    assert found is not None
    assert (found.length, found.output, found.batch) == (1024, 256, 64)
    assert one(SERVED).seconds == pytest.approx(64 / 5000)


@pytest.mark.parametrize("missing", NEEDED)
def test_a_table_without_a_needed_column_is_refused_in_one_line(missing: str) -> None:
    with pytest.raises(BadInput, match=f"without {missing}"):
        read_runs(table(TRAINED, columns=tuple(name for name in COLUMNS if name != missing)))


def test_columns_that_need_not_be_there_may_be_missing() -> None:
    kept = (*NEEDED, "params_b", "n_devices")
    (run,) = read_runs(table(TRAINED, columns=kept))
    assert run.setup is not None
    assert {text.split(" ")[0] for text in run.setup.assumed} == {"length", "batch", "precision"}


def test_unknown_columns_and_other_spellings_of_headings_change_nothing() -> None:
    plain = read_runs(table(TRAINED))
    assert read_runs(table(TRAINED | {"colour": "red"}, columns=("colour", *COLUMNS))) == plain
    head, _, rest = table(TRAINED).partition("\n")
    assert read_runs(f"{head.upper().replace(',', ' , ')}\n{rest}") == plain


def test_a_mark_of_byte_order_and_line_ends_of_windows_change_nothing() -> None:
    plain = table(TRAINED, SERVED)
    assert read_runs("\ufeff" + plain.replace("\n", "\r\n")) == read_runs(plain)


def test_a_quoted_note_may_have_lines() -> None:
    assert one(TRAINED, notes="remat full\nand, a comma, q=C").grade == "C"


@pytest.mark.parametrize("text", ["", "\n", "id,task", "\x00\x01", "{}", "a;b;c\n1;2;3"])
def test_what_is_no_such_table_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_runs(text)
    assert "\n" not in str(caught.value)


def test_a_field_that_is_too_long_for_csv_is_refused_with_its_line() -> None:
    with pytest.raises(BadInput, match="line 2, which is no CSV"):
        read_runs(table(TRAINED | {"notes": "x" * 200_000}))


def test_a_row_that_ends_early_is_refused_and_the_others_are_read() -> None:
    first, second = read_runs(f"{table(TRAINED)}broken,train\n")
    assert first.setup is not None
    assert (second.setup, bool(second.refusal)) == (None, True)


def test_a_figure_that_stands_twice_is_a_run_of_its_own() -> None:
    runs = read_runs(table(TRAINED, TRAINED | {"metric": "mfu", "value": "0.4", "notes": "q=B"}, TRAINED | {"value": "8"}))
    assert [(run.line, len(run.metrics), bool(run.refusal)) for run in runs] == [(2, 2, False), (4, 1, False)]


@pytest.mark.parametrize("changes", [{"n_devices": "16"}, {"model": "Another"}, {"d_model": "2048"}, {"seq_len": "1024"}])
def test_rows_of_one_name_that_differ_in_what_was_run_are_runs_of_their_own(changes: dict[str, str]) -> None:
    runs = read_runs(table(TRAINED, SERVED, TRAINED | {"metric": "mfu", "value": "0.4"} | changes))
    assert [(run.id, run.line, len(run.metrics), bool(run.refusal)) for run in runs] == [
        ("new-1", 2, 1, False), ("new-2", 3, 1, False), ("new-1", 4, 1, False),
    ]  # fmt: skip


@pytest.mark.parametrize("changes", [
    {"n_devices": "8.0", "vocab": "128,256"}, {"date": "2025-07", "source": "another page"}, {"notes": "q=B"},
])  # fmt: skip
def test_what_is_written_in_another_way_is_the_same_run(changes: dict[str, str]) -> None:
    (run,) = read_runs(table(TRAINED, TRAINED | {"metric": "mfu", "value": "0.4"} | changes))
    assert len(run.metrics) == 2


@pytest.mark.parametrize(("changes", "said"), [
    ({"accelerator": "TPU v5p", "framework": "mxnet"}, "framework 'mxnet' on tpu-v5p"),
    ({"accelerator": "TPU v5p", "framework": "pytorch/megatron"}, "framework 'pytorch/megatron' on tpu-v5p"),
    ({"accelerator": "v6e", "framework": "NeMo 2.0"}, "expected a framework that runs on Cloud TPU v6e"),
    ({"accelerator": "MI300X", "framework": "TensorRT-LLM"}, "framework 'TensorRT-LLM' on mi300x"),
    ({"params_b": "800"}, "params_b 800 where the model's sizes give 9.77"), ({"params_b": "1e-9"}, "params_b 1e-09"),
    ({"params_b": "1.5"}, "within a factor of 6 of it; correct params_b or the sizes"),
    ({"model": "Llama-3-8B", "n_layers": "", "params_b": "70"}, "params_b 70 where the model's sizes give 8.03"),
    ({"parallelism": "tp0"}, "expected degrees from 1 on, not tp0"), ({"parallelism": "fsdp8 pp=0"}, "not pp=0"),
    ({"moe_experts": "8", "moe_topk": "0"}, "moe_topk 0 of moe_experts 8; expected at least one of them"),
    ({"moe_experts": "8"}, "moe_experts 8 without moe_topk"), ({"n_kv_heads": "0"}, "n_kv_heads 0 of n_heads 32"),
    ({"date": "yesterday"}, "date 'yesterday'; expected a day, month or year"), ({"date": "2025-13"}, "date '2025-13'"),
    ({"date": "9999-99"}, "date '9999-99'"), ({"date": "2025-02-30"}, "date '2025-02-30'"),
    ({"n_devices": "eight"}, "n_devices 'eight'; expected a number above 0"), ({"params_b": "9B"}, "params_b '9B'"),
    ({"value": "0"}, "'0' as value; expected a number above 0 and up to 1e+15"),
    ({"task": "infer"}, "'infer' of a model that makes tokens; expected infer_prefill, infer_decode or infer_serve"),
])  # fmt: skip
def test_a_row_that_no_run_can_be_is_refused_by_what_is_wrong(changes: dict[str, str], said: str) -> None:
    run = one(TRAINED, **changes)
    assert (run.seconds, run.line) == (None, 2)
    assert said in run.refusal


@pytest.mark.parametrize("changes", [
    {"accelerator": "TPU v5p", "framework": "pytorch"}, {"accelerator": "TPU v4", "framework": "tensorflow"},
    {"accelerator": "MI300X", "framework": "pytorch/megatron"}, {"params_b": "6"}, {"params_b": "18"}, {"params_b": ""},
    {"parallelism": "fsdp8 dp over DCN"}, {"date": "2025-02-28"}, {"date": ""},
])  # fmt: skip
def test_a_row_that_can_be_a_run_is_read(changes: dict[str, str]) -> None:
    assert one(TRAINED, **changes).refusal == ""


def test_rows_without_a_name_are_named_by_their_line() -> None:
    assert [run.id for run in read_runs(table(TRAINED | {"id": ""}, SERVED | {"id": ""}))] == ["line 2", "line 3"]


def test_the_number_of_chips_may_stand_in_the_name_of_the_slice() -> None:
    found = one(TRAINED, accelerator="v5p-128", n_devices="", parallelism="").setup
    assert found is not None
    assert (found.accelerator, found.chips) == ("tpu-v5p", 64)
    assert "n_devices" in one(TRAINED, n_devices="").refusal


def test_a_device_of_a_chip_that_software_sees_as_two_is_half_of_it() -> None:
    found = one(TRAINED, accelerator="MI250X").setup
    assert found is not None
    assert found.chips == 4


@pytest.mark.parametrize(("date", "year"), [("2025-06", 2025 + 5.5 / 12), ("2024", 2024.5), ("2025-06-30", 2025 + 5.5 / 12),
("", 2025)])  # fmt: skip
def test_a_date_is_the_middle_of_its_month_or_year(date: str, year: float) -> None:
    found = one(TRAINED, date=date).setup
    assert found is not None
    assert found.year == pytest.approx(year)


@pytest.mark.parametrize(("changes", "missing"), [
    ({"params_b": "", "n_layers": ""}, "layers and widths"),
    ({"arch_notes": "MoE", "n_layers": ""}, "how many parameters are active"),
    ({"arch_notes": "", "moe_experts": "64", "n_layers": ""}, "how many parameters are active"),
    ({"arch_notes": "some CNN", "n_layers": ""}, "a known model or its operations"),
    ({"arch_notes": "encoder-decoder", "params_b": ""}, "its parameters and width"),
])  # fmt: skip
def test_a_model_that_is_not_told_is_refused_with_what_is_missing(changes: dict[str, str], missing: str) -> None:
    run = one(TRAINED, **changes)
    assert run.setup is None
    assert missing in run.refusal


def test_a_mixture_with_its_active_parameters_is_counted_by_them() -> None:
    found = one(TRAINED, params_b="120", arch_notes="MoE; 12B active", n_layers="", d_model="", vocab="").setup
    assert found is not None
    sketch = found.sketch
    assert sketch.kind == "mixture"
    assert sketch.matrix_flop == pytest.approx(2 * 12e9, rel=0.1)
    assert sketch.parameters == 120e9


def test_a_model_of_any_name_is_counted_by_its_shapes() -> None:
    found = one(TRAINED, model="Never heard of", params_b="").setup
    assert found is not None
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert found.sketch.parameters == 40 * layer + 2 * 4096 * 128256


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=12) | st.sampled_from(
    [
        "tp8 pp2",
        "1e9",
        "-1",
        "mbs 3",
        "fsdp",
        "12B active",
        "MoE",
        "tokens per device 7",
        "99999999999999999999",
        "0",
        "ISL 9 OSL 9",
    ]
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.sampled_from([TRAINED, SERVED]), st.dictionaries(st.sampled_from(COLUMNS), TEXTS, max_size=4))
def test_any_words_in_any_column_are_understood_or_refused(row: dict[str, str], changes: dict[str, str]) -> None:
    for run in read_runs(table(row | changes)):
        assert (run.seconds is None) == bool(run.refusal)
        assert "\n" not in run.refusal
        if run.seconds is not None:
            assert 0 < run.seconds < float("inf")


@pytest.mark.parametrize(("model", "batch", "samples"), [
    ("ResNet-50 v1.5", 1632, 35 * 1.281e6), ("resnet50", 65536, 84 * 1.281e6), ("BERT-large", 256, 2.6e6), ("bert", 14336, 4.8e6),
])  # fmt: skip
def test_samples_to_a_target_grow_with_the_batch_as_reference_points_do(model: str, batch: float, samples: float) -> None:
    """Reference convergence points of mlcommons/logging, training v2.0; ImageNet has 1.281 million images."""
    known = target_of(model)
    assert known is not None
    assert known.samples(batch) == pytest.approx(samples, rel=0.13)


def test_no_other_model_has_a_target() -> None:
    assert target_of("llama-3-8b") is None


@pytest.mark.parametrize(("changes", "part"), [
    ({"moe_experts": "4", "moe_topk": "9"}, "moe_topk 9 of moe_experts 4"),
    ({"n_heads": "8", "n_kv_heads": "32"}, "n_kv_heads 32 of n_heads 8"),
])  # fmt: skip
def test_a_part_that_is_more_than_the_whole_is_refused(changes: dict[str, str], part: str) -> None:
    assert part in one(TRAINED, **changes).refusal


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_cells_that_are_not_parted_by_commas_are_refused(mark: str, name: str) -> None:
    with pytest.raises(BadInput, match=f"cells parted by {name}"):
        read_runs(mark.join(NEEDED) + "\n")


def test_a_column_that_stands_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="'value' twice"):
        read_runs("id,task,model,accelerator,metric,value,value\n")
