"""Names of accelerators: whatever tool they come from, they give a key and a count of chips, or a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import accelerators, generations, legal_counts, machines, parse_name, slice_name
from catalog.tables import rows_of
from core.errors import BadInput, NotFound, TandemError

SLICES = (
    ("v4-8", "tpu-v4", 4, "v4-8 = 4 chips, 2x2x1, one host"),
    ("v5p-8", "tpu-v5p", 4, "v5p-8 = 4 chips, 2x2x1, one host"),
    ("v5litepod-16", "tpu-v5e", 16, "v5litepod-16 = 16 chips, 4x4, 4 hosts"),
    ("v5e-16", "tpu-v5e", 16, "v5e-16 = 16 chips, 4x4, 4 hosts"),
    ("v6e-8", "tpu-v6e", 8, "v6e-8 = 8 chips, 2x4, one host (or 2 of ct6e-standard-4t)"),
    ("tpu7x-8", "tpu-v7", 4, "tpu7x-8 = 4 chips, 2x2x1, one host"),
    ("tpu7x-2", "tpu-v7", 1, "tpu7x-2 = 1 chip, 1x1x1, one host"),
    ("v2-8", "tpu-v2", 4, "v2-8 = 4 chips, 2x2, one host"),
    ("v3-32", "tpu-v3", 16, "v3-32 = 16 chips, 4x4, 4 hosts"),
    ("tpu-v5p-8", "tpu-v5p", 4, "tpu-v5p-8 = 4 chips, 2x2x1, one host"),
    ("tpu-v6e-8:1", "tpu-v6e", 8, "tpu-v6e-8 = 8 chips, 2x4, one host (or 2 of ct6e-standard-4t)"),
    ("TPU-v6e-16-head", "tpu-v6e", 16, "TPU-v6e-16-head = 16 chips, 4x4, 4 hosts"),
    ("v5e-2x4", "tpu-v5e", 8, "v5e-2x4 = 8 chips, 2x4, one host (or 2 of ct5lp-hightpu-4t)"),
    ("v5p-2x2x2", "tpu-v5p", 8, "v5p-2x2x2 = 8 chips, 2x2x2, 2 hosts"),
    ("v5p-1536", "tpu-v5p", 768, "v5p-1536 = 768 chips, 8x8x12, 192 hosts"),
    ("v5p-36864", "tpu-v5p", 18432, "v5p-36864 = 18432 chips, 3 slices of 16x16x24, 4608 hosts"),
    ("ct5p-hightpu-4t", "tpu-v5p", 4, "ct5p-hightpu-4t = 4 chips, 2x2x1, one host"),
    ("ct5p-hightpu-1t-tpu", "tpu-v5p", 1,
     "ct5p-hightpu-1t-tpu = 1 chip, 1x1x1, one host (part of a host; Compute Engine and GKE only)"),
    ("a3-highgpu-8g", "h100-sxm", 8, "a3-highgpu-8g = 8 chips of h100-sxm, one host"),
    ("p5.48xlarge", "h100-sxm", 8, "p5.48xlarge = 8 chips of h100-sxm, one host"),
    ("Standard_ND96isr_H100_v5", "h100-sxm", 8, "Standard_ND96isr_H100_v5 = 8 chips of h100-sxm, one host"),
    ("A100-80GB:8", "a100-80", 8, "A100-80GB = 8 chips of a100-80, one host"),
    ("8x H100-SXM", "h100-sxm", 8, "h100-sxm = 8 chips, one host"),
    ("h100-mega-80gb-8", "h100-sxm", 8, "h100-mega-80gb-8 = 8 chips of h100-sxm, one host"),
    ("l4x4", "l4", 4, "l4x4 = 4 chips of l4, one host"),
    ("L4:1", "l4", 1, "l4 = 1 chip, one host"),
    ("tpu-v6e=16", "tpu-v6e", 16, "tpu-v6e = 16 chips, 4x4, 4 hosts"),
)  # fmt: skip

KINDS = (
    ("TPU v5 lite", "tpu-v5e"), ("TPU v6 lite", "tpu-v6e"), ("TPU v4", "tpu-v4"), ("TPU v5p", "tpu-v5p"), ("TPU7x", "tpu-v7"),
    ("TPU-V5P", "tpu-v5p"), ("tpu-v4-podslice", "tpu-v4"), ("tpu-v5-lite-podslice", "tpu-v5e"), ("tpu-v5p-slice", "tpu-v5p"),
    ("tpu-v6e-slice", "tpu-v6e"), ("Trillium", "tpu-v6e"), ("NVIDIA H100 80GB HBM3", "h100-sxm"),
    ("NVIDIA H100 PCIe", "h100-pcie"),
    ("NVIDIA A100-SXM4-80GB", "a100-80"), ("NVIDIA A100-SXM4-40GB", "a100-40"), ("Tesla T4", "t4"), ("NVIDIA L4", "l4"),
    ("Tesla V100-SXM2-16GB", "v100-16"), ("AMD Instinct MI300X OAM", "mi300x"), ("nvidia-h100-mega-80gb", "h100-sxm"),
    ("nvidia-tesla-a100", "a100-40"), ("nvidia-a100-80gb", "a100-80"), ("A100-40G", "a100-40"), ("H200-SXM", "h200"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "key", "chips", "echo"), SLICES, ids=[row[0] for row in SLICES])
def test_a_name_with_a_number_gives_chips_and_says_back_what_was_understood(name: str, key: str, chips: int, echo: str) -> None:
    found = parse_name(name)
    assert (found.key, found.chips, found.echo) == (key, chips, echo)


@pytest.mark.parametrize(("name", "key"), KINDS, ids=[row[0] for row in KINDS])
def test_a_name_of_a_kind_gives_its_key_and_no_count(name: str, key: str) -> None:
    found = parse_name(name)
    assert (found.key, found.chips) == (key, None)


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_every_key_means_itself_however_its_letters_are_written(key: str) -> None:
    assert parse_name(key) == parse_name(key)
    assert (parse_name(key).key, parse_name(key).echo) == (key, "")
    assert parse_name(f"  {key.upper()} ").key == key


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("H100", ("h100-sxm", "h100-pcie")), ("H100:8", ("h100-sxm", "h100-pcie")), ("8xH100", ("h100-sxm", "h100-pcie")),
        ("A100", ("a100-40", "a100-80")), ("V100", ("v100-16", "v100-32")), ("TPU v5", ("tpu-v5e", "tpu-v5p")),
        ("TPU", ("tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e", "tpu-v7")), ("Gaudi", ("gaudi2", "gaudi3")),
    ],
)  # fmt: skip
def test_a_name_of_several_things_is_asked_about_in_one_line(name: str, asked: tuple[str, ...]) -> None:
    with pytest.raises(BadInput) as caught:
        parse_name(name)
    assert not isinstance(caught.value, NotFound)
    line = str(caught.value)
    assert "say which one is meant" in line
    assert [key for key in asked if key not in line] == []
    assert len(line) <= 400


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("v5p-10", "ask for v5p-8 or v5p-16"), ("v6e-12", "ask for v6e-8 or v6e-16"), ("v6e-3x3", "ask for v6e-8 or v6e-16"),
        ("v5p-3x4x4", "a slice of 48 chips that does not exist"), ("v6e-0", "ask for v6e-1"),
        ("tpu7x-4", "ask for tpu7x-2 or tpu7x-8"),
        ("v5p-4", "write tpu-v5p=N with N in chips"), ("v4-7", "a multiple of 2 from 8 on, such as v4-8"),
        ("v4-33", "from 8 on, such as v4-32"),
        ("v5p-8=8", "v5p-8 = 4 chips"), ("a3-highgpu-8g:2", "8 chips of h100-sxm"), ("h100-sxm=0", "KEY=N"),
        ("h100-sxm=1000001", "1,000,000"),
    ],
)  # fmt: skip
def test_a_slice_that_does_not_exist_or_contradicts_its_count_is_refused_with_what_to_write(name: str, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_name(name)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [("tpu-v6", "'tpu-v6e'"), ("h10", "'h100-sxm' or 'h100-pcie'"), ("p5.48xlrge", "'p5.48xlarge'"), ("mi300xx", "'mi300x'")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(NotFound) as caught:
        parse_name(name)
    assert f"did you mean {near}?" in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "x", "8x", ":8", "=", "v99-8", "nvidia", "a" * 500, "\x00", "tpu--", "h100-sxm=8=8=8"])
def test_nonsense_is_one_line(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_name(name)
    assert str(caught.value).startswith("got ")
    assert str(caught.value).isprintable()


@given(st.text(max_size=200))
def test_any_text_is_understood_or_refused_on_purpose(text: str) -> None:
    try:
        found = parse_name(text)
    except TandemError:
        return
    assert found.key in accelerators()


@given(st.data())
def test_what_is_echoed_is_understood_as_the_same(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(accelerators())))
    chips = data.draw(st.sampled_from(legal_counts(key, 3000) or (1,)))
    for written in (slice_name(key, chips), f"{key}={chips}", f"{key}:{chips}", f"{chips}x {key}"):
        found = parse_name(written)
        assert (found.key, found.chips) == (key, chips)
        again = parse_name(found.echo)
        assert (again.key, again.chips) == (key, chips)


@pytest.mark.parametrize("name", sorted(machines()))
def test_every_type_of_machine_gives_its_chips(name: str) -> None:
    machine = machines()[name]
    found = parse_name(machine.name)
    assert (found.key, found.chips) == (machine.accelerator, machine.chips)
    assert parse_name(found.echo).chips == machine.chips


def test_the_files_of_names_and_machines_name_accelerators_that_exist_once_each() -> None:
    names = [row["name"] for row in rows_of("names.csv")]
    assert len(names) == len(set(names))
    assert len(rows_of("machines.csv")) == len(machines())
    for row in rows_of("names.csv"):
        assert set(row["accelerators"].split()) <= set(accelerators()), row
    assert {machine.accelerator for machine in machines().values()} <= set(accelerators())
    assert set(generations()) <= set(accelerators())
