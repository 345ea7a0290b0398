"""Which packages fit one environment, which pair does not, and how many environments they go into then."""

import pytest

from advisor.rules.case import version_numbers
from advisor.rules.environments import any_version_meets, known_name, resolve, satisfies
from catalog.pins import needs_in, releases
from tests.unit.advisor.rules.subjects import case, said


@pytest.mark.parametrize(("version", "need", "meets"), [
    ("0.0.50.1", "libtpu==0.0.50.*", True), ("0.0.5", "libtpu==0.0.50.*", False), ("2.9.1", "torch<2.10", True),
    ("2.10.0", "torch<2.10", False),
    ("2.15", "torch<=2.15.0", True), ("2.15.1", "torch<=2.15.0", False), ("3.9", "python>=3.11", False), ("", "torch<2.10", True),
])
def test_versions_are_held_against_needs_as_numbers(version: str, need: str, meets: bool) -> None:
    assert satisfies(version, needs_in(need)[0]) is meets


@pytest.mark.parametrize(("needs", "possible"), [
    ("libtpu==0.0.21 libtpu>=0.0.50", False), ("libtpu==0.0.50.* libtpu>=0.0.50", True), ("libtpu<0.0.48 libtpu==0.0.48", False),
    ("numpy>=1.26 numpy<2.2", True), ("numpy<1.24 numpy>=1.24", False), ("numpy<=1.24 numpy>=1.24", True),
    ("numpy>1.24 numpy<=1.24", False),
    ("jax==0.11.2 jax>=0.11.1", True), ("jax==0.11.2 jax==0.12.*", False), ("", True),
])
def test_a_release_that_was_not_read_may_be_any_that_all_needs_leave(needs: str, possible: bool) -> None:
    assert any_version_meets(needs_in(needs)) is possible


def test_torchtpu_and_jax_fit_one_environment_with_the_libtpu_that_pip_found() -> None:
    found = resolve(("torch_tpu", "jax"), "tpu", {"torch": "2.14.1", "python": "3.12"})
    assert found.fits
    one = found.environments[0]
    assert (one.python, one.version("libtpu"), one.version("jax[tpu]")) == ("3.12", "0.0.50.1", "0.12.0.1")


@pytest.mark.parametrize(("wanted", "stated", "words"), [
    (("torch_xla", "torch_tpu"), {}, "libtpu ==0.0.21 against >=0.0.50"),
    (("torch_xla", "jax"), {"jax": "0.12.0.1"}, "libtpu ==0.0.21 against ==0.0.50.*"),
    (("jax", "tpu-inference"), {"jax": "0.12.0.1"}, "libtpu ==0.0.50.* against ==0.0.48"),
    (("vllm-tpu", "torchtpu"), {}, "libtpu ==0.0.48 against >=0.0.50"),
])
def test_a_pair_that_excludes_each_other_goes_into_two_environments(
    wanted: tuple[str, ...], stated: dict[str, str], words: str
) -> None:
    found = resolve(wanted, "tpu", stated)
    assert words in found.conflict
    assert [one.holds for one in found.environments] == [(known_name(name, "tpu"),) for name in wanted]


def test_what_fits_stays_together_when_others_go_apart() -> None:
    found = resolve(("jax", "tpu-inference", "torch_tpu", "maxtext"), "tpu", {"jax": "0.12.0.1"})
    assert [one.holds for one in found.environments] == [("jax[tpu]", "torch-tpu", "maxtext"), ("tpu-inference",)]


@pytest.mark.parametrize(("wanted", "stated", "words"), [
    ("torch_xla", {"torch-xla": "2.8", "python": "3.10"}, "needs python >=3.11, python <3.14, and python 3.10 is stated"),
    ("torch_xla", {"torch": "2.12"}, "needs torch >=2.9.0, torch <2.10, and torch 2.12 is stated"),
    ("torch_tpu", {"python": "3.10"}, "needs python >=3.11, and python 3.10 is stated"),
    ("tensorflow", {"tensorflow": "2.21"}, "there is no tensorflow-tpu 2.21: the last release is 2.20.0"),
])
def test_a_stated_version_that_fits_nothing_is_named(wanted: str, stated: dict[str, str], words: str) -> None:
    found = resolve((wanted,), "tpu", stated)
    assert words in found.conflict
    assert found.environments == ()


@pytest.mark.parametrize(("wanted", "stated"), [
    (("jax",), {"jax": "0.11.5"}), (("flax", "jax"), {"jax": "0.10.2"}), (("torch_xla", "jax"), {}),
    (("tensorflow",), {"tensorflow": "2.3"}),
])
def test_what_was_not_read_is_no_conflict(wanted: tuple[str, ...], stated: dict[str, str]) -> None:
    assert resolve(wanted, "tpu", stated).fits


def test_on_a_gpu_the_builds_for_tpus_are_not_meant() -> None:
    found = resolve(("mxnet", "jax"), "gpu", {"jax": "0.10.2"})
    assert "numpy <1.24 against >=2.0" in found.conflict
    assert [one.python for one in found.environments] == ["3.11", "3.14"]


def test_packages_without_pins_are_left_out() -> None:
    assert resolve(("my-own-package",), "tpu").environments[0].holds == ()


def test_the_rule_tells_the_conflict_and_both_environments() -> None:
    found = said("R211", case("jax", "tpu-v6e", existing={"libraries": ["tpu-inference"], "versions": {"jax": "0.12.0.1"}}))
    assert found is not None
    assert found.effect == "exclude"
    assert "use 2 environments or containers" in found.reason
    assert "jax 0.11.2, libtpu 0.0.48" in found.reason


def test_the_rule_tells_pins_that_fit() -> None:
    found = said("R211", case("torch-tpu", "tpu-v6e", existing={"libraries": ["jax"], "versions": {"jax": "0.12.0.1"}}))
    assert found is not None
    assert found.effect == "suggest"
    assert "libtpu 0.0.50.1" in found.reason


@pytest.mark.parametrize("about", [
    case("jax", "tpu-v6e"), case("jax", "tpu-v6e", existing={"libraries": ["numpyro"]}),
    case("jax", "h100-sxm", existing={"libraries": ["tpu-inference"], "versions": {"jax": "0.12.0.1"}}),
    case("torch-xla", "tpu-v4", existing={"versions": {"torch-xla": "2.1"}}),
])
def test_the_rule_is_silent_where_nothing_is_asked_or_known(about) -> None:
    assert said("R211", about) is None


def test_every_pin_has_its_source_and_releases_stand_newest_first() -> None:
    for name, known in releases().items():
        numbers = [version_numbers(one.version) for one in known if one.version]
        assert numbers == sorted(numbers, reverse=True), name
        assert all(one.source and one.source_date.startswith("2026-1") for one in known)
        assert all(need.name == "python" or need.name in releases() for one in known for need in one.needs)


def test_a_cell_that_is_no_need_is_refused() -> None:
    with pytest.raises(ValueError, match="got 'torch~2'"):
        needs_in("torch~2")
