"""Rules about one job over two unlike pools: what cannot span them, what the link between them carries, when it is worth it."""

from advisor.rules import Finding, split_rule
from advisor.rules.ages import PACKAGES, PLATFORM, PRACTICE, SILICON, facts
from advisor.rules.split_case import SplitCase, moves_checkpoints
from core.format import seconds

DERIVED = "derived from the accelerator table"
JAX_DOCS = "jax documentation (@cec06d1)"
MACHINES = "docs.cloud.google.com, TPU machines, 2026-08-26"
DECOUPLED = "DeepMind on Decoupled DiLoCo, 2026-04-22 (secondary copies)"
LEAST_SYNCHRONOUS = 10e9
GIGABIT = 0.125e9
WORTH = 0.2


def _gradient_bytes(case: SplitCase) -> float:
    """Return bytes of all gradients in 16 bits."""
    return 2.0 * case.code.parameters


def _both_train(case: SplitCase) -> bool:
    """Whether both sides could hold a copy of the model that is trained."""
    return case.code.workload.trains and not case.has("cpu") and not case.handed_over


@split_rule("R104", facts(
    "hybrid_sync_dp", "exclude warn", "no way to run", f"{DERIVED}; framework support table", PLATFORM,
))
def no_collective_spans_unlike_pools(case: SplitCase) -> Finding | None:
    """One synchronous collective cannot span GPUs and TPUs, nor keep pace over unlike chips."""
    if not case.unlike or not case.joined or case.synchronous is False or not case.code.workload.trains:
        return None
    if case.has("tpu"):
        why = "the collectives of a TPU and of a GPU or CPU do not work together, and no machine has both"
    else:
        why = "their collectives differ, and the slower side would hold up every step"
    if case.planned and case.synchronous and case.staged:
        return Finding("warn", f"{why}: gradients of {case.names} go through the hosts and a program of your own")
    if case.planned:
        return Finding("exclude", f"one synchronous step over {case.names}: {why}") if case.synchronous else None
    return Finding(
        "warn",
        f"{case.names} cannot share one synchronous step: {why}; split by stage, or train copies that meet rarely",
    )


@split_rule("R105", facts(
    "hybrid_sync_dp", "exclude warn", "Received incompatible devices", JAX_DOCS, PACKAGES,
))
def one_jit_has_one_backend(case: SplitCase) -> Finding | None:
    """One jitted JAX computation runs on devices of one backend."""
    if len(case.kinds) < 2 or not case.joined or case.one_program is False:
        return None
    if case.one_program:
        return Finding(
            "exclude",
            f"one jitted computation over {case.names}: JAX refuses devices of two backends; device_put between two programs "
            "copies through the host",
        )
    if case.planned or case.code.workload.existing.framework != "jax" or case.has("cpu"):
        return None
    return Finding(
        "warn",
        f"JAX holds one backend in a jitted computation: {case.names} need two programs, and arrays pass through hosts",
    )


@split_rule("R106", facts("stage_split", "suggest", "allowed in one process", JAX_DOCS, PACKAGES))
def jax_may_use_the_cpu_beside(case: SplitCase) -> Finding | None:
    """One JAX process may use the CPU beside one accelerator, for preprocessing."""
    others = case.kinds - {"cpu"}
    uses_jax = case.code.workload.existing.framework == "jax" or any("jax" in side.runtime for side in case.sides)
    if not case.has("cpu") or not case.joined or len(others) != 1 or not uses_jax:
        return None
    return Finding(
        "suggest",
        f'set jax_platforms="{next(iter(others))},cpu": one process may prepare data on the CPU and compute on the accelerator',
    )


@split_rule("R107", facts(
    "stage_split", "suggest", "12.5 to 50 GB/s for each host inside Google's network, 0.1 to 1 GB/s between clouds",
    f"{MACHINES}; {DERIVED}", PLATFORM,
))
def islands_are_joined_by_queues(case: SplitCase) -> Finding | None:
    """A GPU island and a TPU island are joined by calls, queues or an object store, stage by stage."""
    if not case.gpu_and_tpu or not moves_checkpoints(case):
        return None
    sites = {side.site for side in case.sides if side.site}
    rate = ("" if len(sites) > 1 else "12.5 to 50 GB/s for each host inside Google's network, ") + "0.1 to 1 GB/s between clouds"
    return Finding(
        "suggest",
        f"to use {case.names} together split by stage and join them with Ray, a queue or an object store: {rate}",
    )


@split_rule("R108", facts(
    "stage_split", "warn", "bytes / the slower network card, above 10 % of the stage; computed from the case", MACHINES, PRACTICE,
    explains=True,
))
def hand_overs_take_their_time(case: SplitCase) -> Finding | None:
    """A hand-over that takes more than a tenth of its stage is felt."""
    if case.transfer_bytes is None or not case.link_bytes_per_s or not case.stage_s:
        return None
    transfer_s = case.transfer_bytes / case.link_bytes_per_s
    if transfer_s <= 0.1 * case.stage_s:
        return None
    return Finding(
        "warn",
        f"handing over {case.transfer_bytes / 1e9:.3g} GB takes {seconds(transfer_s)}, {transfer_s / case.stage_s:.0%} of the "
        "stage: send less, or overlap it",
    )


@split_rule("R109", facts(
    "hybrid_sync_dp", "exclude warn", "70B in bf16: 140 GB, 5.6 s at 25 GB/s, 1,120 s at 1 Gbit/s; computed from the case",
    DERIVED,
    PRACTICE,
))
def gradients_are_too_much_for_slow_links(case: SplitCase) -> Finding | None:
    """Summing gradients between islands in every step needs 10 GB/s and more."""
    if not case.code.workload.trains or not case.synchronous or not case.link_bytes_per_s:
        return None
    size = _gradient_bytes(case)
    told = f"{size / 1e9:.3g} GB of gradients cross in every step: {seconds(size / case.link_bytes_per_s)}"
    if case.link_bytes_per_s < LEAST_SYNCHRONOUS and not case.staged:
        return Finding(
            "exclude",
            f"{told} at {case.link_bytes_per_s / 1e9:.3g} GB/s, below the 10 GB/s that a synchronous sum needs",
        )
    return Finding("warn", f"{told} at {case.link_bytes_per_s / 1e9:.3g} GB/s")


@split_rule("R110", facts(
    "hybrid_sync_dp", "suggest", "about 500 inner steps, 8 workers, 500 times less traffic at the same perplexity",
    "DiLoCo, arXiv:2311.08105", PRACTICE,
))
def copies_may_meet_rarely(case: SplitCase) -> Finding | None:
    """Data parallelism over islands works when they meet only every few hundred steps (DiLoCo)."""
    if not case.planned or not _both_train(case) or case.synchronous is False or case.code.workload.task == "rl":
        return None
    return Finding(
        "suggest",
        "train one copy on each side and average every 500 steps or so (DiLoCo): about 500 times less traffic at the same "
        "perplexity in its paper",
    )


@split_rule("R111", facts(
    "interconnect", "suggest", "198 became 0.84 Gbit/s over 8 sites; 12B over four regions on 2 to 5 Gbit/s", DECOUPLED, PRACTICE,
))
def gigabits_carry_decoupled_training(case: SplitCase) -> Finding | None:
    """A few Gbit/s between islands carry decoupled low-communication training."""
    rate = case.link_bytes_per_s
    if rate is None or not GIGABIT <= rate <= 5 * GIGABIT or not _both_train(case):
        return None
    return Finding(
        "suggest",
        f"{rate / GIGABIT:.2g} Gbit/s is enough for Decoupled DiLoCo, which trained 12B over four regions on 2 to 5 Gbit/s, "
        "over 20 times as fast as synchronous steps",
    )


@split_rule("R112", facts(
    "hybrid_sync_dp", "suggest", "64.1 % against 64.4 % accuracy; goodput 88 % against 27 % under failures", DECOUPLED, PRACTICE,
))
def generations_mix_when_decoupled(case: SplitCase) -> Finding | None:
    """Unequal generations of one vendor's chips may train one model when they are decoupled."""
    first, second = case.sides
    if case.unlike or first.accelerator == second.accelerator or not case.planned or not _both_train(case):
        return None
    return Finding(
        "suggest",
        f"{case.names}: in one synchronous step the slower generation sets the pace; Decoupled DiLoCo mixed v6e and v5p at 64.1 "
        "% against 64.4 % accuracy",
    )


@split_rule("R113", facts("experimental", "warn", "no published run", DECOUPLED, PRACTICE))
def gpu_with_tpu_is_unpublished(case: SplitCase) -> Finding | None:
    """No published run mixes GPUs and TPUs in one low-communication training."""
    if not case.gpu_and_tpu or not case.planned or case.synchronous is not False or not _both_train(case):
        return None
    return Finding(
        "warn",
        "published mixes are of TPU generations only: GPUs with TPUs need an outer optimizer of your own over plain arrays; "
        "treat it as an experiment",
    )


@split_rule("R114", facts(
    "comm_overhead", "suggest", "overlapped, quantised, partial exchange", "Streaming DiLoCo, arXiv:2501.18512", PRACTICE,
))
def latency_is_hidden_by_streaming(case: SplitCase) -> Finding | None:
    """High latency between islands is hidden by overlapping, quantised and partial exchange."""
    if case.link_latency_s is None or case.link_latency_s < 0.01 or not _both_train(case):
        return None
    return Finding(
        "suggest",
        f"{seconds(case.link_latency_s)} between the islands: exchange parts of the model, quantised, while both go on "
        "(Streaming DiLoCo)",
    )


@split_rule("R131", facts(
    "stage_split", "penalise", "rank x 0.5 below a saving of 20 %", "policy of the advisor", PRACTICE,
))
def two_stacks_must_earn_their_keep(case: SplitCase) -> Finding | None:
    """A split must save a fifth to be worth two stacks where one pool alone would do."""
    if not case.meets_alone or case.saving is None or case.saving >= WORTH:
        return None
    told = f"saves {case.saving:.0%}" if case.saving >= 0 else f"loses by {-case.saving:.0%}"
    return Finding(
        "penalise",
        f"one pool alone meets what is asked, and the split {told}: two stacks are worth it from {WORTH:.0%} saved",
        0.5,
    )


@split_rule("R132", facts("hybrid_sync_dp", "exclude warn", "no bit-equal results", JAX_DOCS, SILICON))
def bits_differ_between_chips(case: SplitCase) -> Finding | None:
    """Bit-equal results on GPU and TPU cannot be had."""
    if not case.reproducible or not case.unlike:
        return None
    reason = f"{case.names} add up in another order and precision: bit-equal results cannot be had on both"
    return Finding("exclude" if case.planned else "warn", reason)
