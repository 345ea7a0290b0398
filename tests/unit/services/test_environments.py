"""Which environment works for a framework on an accelerator: what is installed, why not, and where to go instead."""

import re
from pathlib import Path

import pytest

import catalog
from core.errors import BadInput, NotFound
from core.probe import RUNTIME_IDS
from services.environments import Answer, Way, resolve_environment

ROOT = Path(__file__).resolve().parents[3]


def answer(framework: str, accelerator: str, *stated: str) -> Answer:
    return resolve_environment(framework, accelerator, stated)


def way(framework: str, accelerator: str, *stated: str) -> Way:
    found = answer(framework, accelerator, *stated)
    assert found.ways, found.refused
    return found.ways[0]


@pytest.mark.parametrize("runtime", RUNTIME_IDS)
def test_every_runtime_is_answered_on_every_accelerator(runtime: str) -> None:
    for key, chip in catalog.accelerators().items():
        found = answer(runtime, key)
        supported = catalog.support(runtime, chip).status != "unsupported"
        assert (len(found.ways), len(found.refused)) == ((1, 0) if supported else (0, 1)), key
        assert all(one.reason for one in found.refused)


@pytest.mark.parametrize("key", [key for key, chip in catalog.accelerators().items() if chip.kind in ("gpu", "tpu")])
@pytest.mark.parametrize("framework", ["jax", "torch", "tensorflow", "keras", "mxnet"])
def test_a_framework_without_a_way_is_told_one_that_has(framework: str, key: str) -> None:
    found = answer(framework, key)
    assert found.ways or found.way_out
    chip = catalog.accelerator(key)
    assert all(catalog.support(runtime, chip).status == status for runtime, status in found.way_out)


def test_a_tested_environment_is_that_of_its_requirements_file() -> None:
    found = way("jax", "tpu-v6e")
    text = (ROOT / "requirements" / "jax-tpu.txt").read_text(encoding="utf-8")
    assert found.tested
    assert "runtimes install jax-tpu" in found.install
    assert {"jax", "jaxlib", "libtpu", "numpy"} <= {name for name, _ in found.pins}
    assert all(f"{name}=={version}\n" in text for name, version in found.pins)


def test_a_cpu_has_what_tandem_itself_runs_on() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    found = way("jax", "cpu")
    assert dict(found.pins).keys() == {"jax", "jaxlib", "optax"}
    assert all(f"{name}=={version}\n" in text for name, version in found.pins)


@pytest.mark.parametrize(("accelerator", "stated", "environment"), [
    ("h100-sxm", (), "jax-cuda13"), ("v100-32", (), "jax-cuda12"), ("h100-sxm", ("cuda==12.4",), "jax-cuda12"),
    ("mi300x", (), "jax-rocm7"), ("v5p-8", (), "jax-tpu"),
])  # fmt: skip
def test_the_build_of_jax_follows_the_chip_and_the_cuda_that_is_there(
    accelerator: str, stated: tuple[str, ...], environment: str
) -> None:
    assert f"install {environment} " in way("jax", accelerator, *stated).install


def test_a_card_that_cuda_13_dropped_gets_no_build_for_it() -> None:
    found = way("torch", "v100-16")
    assert "torch-cuda" not in found.install
    assert "a build for CUDA 12" in found.install


@pytest.mark.parametrize(("framework", "accelerator", "part"), [
    ("jax", "h100-sxm", "'jax[cuda13]==0.7.1'"), ("jax", "v100-16", "'jax[cuda12]==0.7.1'"), ("jax", "v6e", "'jax[tpu]==0.7.1'"),
    ("jax", "mi300x", "jax==0.7.1"), ("jax", "cpu", "jax==0.7.1"),
])  # fmt: skip
def test_a_stated_version_is_installed_in_the_build_of_the_accelerator(framework: str, accelerator: str, part: str) -> None:
    found = way(framework, accelerator, "jax==0.7.1")
    assert not found.tested
    assert part in found.install


def test_a_version_that_the_tested_environment_holds_leaves_it_as_it_is() -> None:
    assert way("torch-tpu", "tpu-v6e", "torch==2.13").tested
    assert not way("torch-tpu", "tpu-v6e", "torch==2.12").tested


def test_python_is_kept_to_and_never_newer_than_what_was_resolved_for() -> None:
    assert way("tensorflow", "cpu", "keras==3.15.1").python == "3.13"
    assert way("jax", "v6e", "python==3.12", "jax==0.10.2", "flax").python == "3.12"


def test_pytorch_xla_and_torchtpu_go_into_two_environments() -> None:
    found = answer("torch-xla", "v5e", "torch-tpu")
    assert not found.ways
    assert "libtpu" in found.refused[0].reason
    assert len(found.refused[0].apart) == 2


@pytest.mark.parametrize(("framework", "accelerator", "stated", "reason"), [
    ("torch-xla", "v4-8", "torch==2.11", "torch >=2.9.0, torch <2.10"),
    ("tensorflow", "v4-8", "tensorflow==2.21", "the last release is 2.20.0"),
    ("torch-tpu", "v6e", "torch==2.9.1", "torch >=2.11.0"),
])  # fmt: skip
def test_a_version_that_does_not_fit_is_refused_with_what_would(
    framework: str, accelerator: str, stated: str, reason: str
) -> None:
    found = answer(framework, accelerator, stated)
    assert not found.ways
    assert reason in found.refused[0].reason


@pytest.mark.parametrize(("framework", "accelerator", "first"), [
    ("mxnet", "h100-sxm", "torch-eager"), ("mxnet", "tpu-v6e", "torch-tpu"), ("tensorflow", "tpu7x", "keras-jax"),
    ("tf", "v5p-8", "keras-jax"), ("keras-torch", "v6e", "keras-jax"), ("torch-xla", "v6e", "torch-tpu"),
    ("torch-eager", "tpu-v3", "jax"),
])  # fmt: skip
def test_the_way_out_of_a_dead_end_is_the_nearest_that_works(framework: str, accelerator: str, first: str) -> None:
    assert answer(framework, accelerator).way_out[0][0] == first


@pytest.mark.parametrize(("framework", "accelerator"), [("jax", "tpu-v6e"), ("torch", "h100-sxm"), ("torch", "v6e")])
def test_what_has_a_future_needs_no_way_out(framework: str, accelerator: str) -> None:
    assert answer(framework, accelerator).way_out == ()


def test_the_best_supported_runtime_comes_first() -> None:
    assert [(one.runtime, one.status) for one in answer("torch", "v6e").ways] == [
        ("torch-tpu", "supported"), ("torch-xla", "deprecated")]  # fmt: skip


def test_a_library_without_pins_is_named_and_installed_too() -> None:
    found = answer("torch-eager", "h100-sxm", "flash-attn")
    assert found.unknown == ("flash-attn",)
    assert found.ways[0].install.endswith("torch==2.15.0 flash-attn")


def test_what_a_name_means_is_said_back() -> None:
    assert answer("jax", "v5p-8").accelerator.startswith("v5p-8 = 4 chips")


@pytest.mark.parametrize(("framework", "accelerator", "stated", "fault"), [
    ("pytorc", "cpu", (), r"'pytorc'.*did you mean pytorch"), ("", "cpu", (), "expected one of jax"),
    ("jax", "h1000", (), "h1000"), ("jax", "tpu", (), "7 things"), ("jax", "cpu", ("jax=1",), "jax=1"),
    ("jax", "cpu", ("cuda==abc",), "cuda==abc"), ("jax", "cpu", ("a; rm -rf /",), "NAME==VERSION"),
    ("x" * 500, "cpu", (), "x{60}"), ("jax", "cpu", ("",), "NAME==VERSION"),
])  # fmt: skip
def test_what_cannot_be_understood_gets_one_line(
    framework: str, accelerator: str, stated: tuple[str, ...], fault: str
) -> None:
    with pytest.raises((BadInput, NotFound)) as caught:
        answer(framework, accelerator, *stated)
    assert re.search(fault, str(caught.value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_cuda_that_nothing_is_built_for_is_no_way() -> None:
    found = answer("jax", "h100-sxm", "cuda==99")
    assert found.ways == ()
    assert "no build for CUDA 99" in " ".join(one.reason for one in found.refused)
