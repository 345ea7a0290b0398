"""Rules about many chips: what fits one, which links carry which kind of parallelism, how slices are shaped. Most explain."""

from advisor.memory import parameter_bytes
from advisor.rules import Finding, rule
from advisor.rules.ages import PACKAGES, PLATFORM, PRACTICE, SILICON, TPU_ONLY, facts
from advisor.rules.case import Case
from catalog.slices import slice_of

BOOK = "jax-ml.github.io/scaling-book (2025-02 snapshot)"
TABLE = "accelerator table"
STAS = "stas00/ml-engineering (@744d01e, 2026-08-22)"
MACHINES = "docs.cloud.google.com, TPU machines, 2026-08-26"
ADAM_BYTES = 10
"""Bytes for each parameter under Adam in mixed precision: weights and gradients in 16 bits, two moments and some of fp32."""
AXIS_TOKENS = {"tpu-v5e": (2190, 2), "tpu-v5p": (2550, 3), "tpu-v6e": (5100, 2), "tpu-v7": (11500, 3)}
"""Tokens on a chip at which one axis of links hides the gathers of FSDP, and how many axes a slice may have."""
FLAT_TPUS = ("tpu-v5e", "tpu-v6e")
"""TPUs whose links are closed to rings only on an axis of 16."""
HOST_RATES = {"tpu-v4": 15, "tpu-v5e": 15, "tpu-v5p": 15, "tpu-v6e": 32}
OFFLOADS = ("offload", "host-offload", "cpu-offload", "zero-offload", "activation-offload", "optimizer-offload")
POINT_TO_POINT = ("pipeline-parallel", "pipeline-parallelism", "pipelining", "p2p", "send-recv", "isend", "irecv")


def _tokens(case: Case, chips: int) -> float:
    """Return tokens, or samples, that one of so many chips works on in a step."""
    return case.workload.units_per_step / chips


def trains_all_by_adam(case: Case) -> bool:
    """Return whether every weight has moments of its own: adapters alone leave those of the model out."""
    return case.workload.optimizer in ("adam", "adamw") and case.workload.lora is None


def _transforms(case: Case) -> bool:
    return case.workload.unit == "tokens" and case.workload.trains and case.code.graph.hidden is not None


@rule("R074", facts(
    "per_chip_memory", "warn suggest",
    "parameters above a tenth of the memory: v5p 9B, v6e 3.4B, v7 20B, H100 8B, H200 14B; computed from the "
    "case", f"{BOOK}; {TABLE}", SILICON, explains=True, kinds=("gpu", "tpu", "other"),
))
def adam_needs_ten_bytes_a_parameter(case: Case) -> Finding | None:
    """Adam with pure data parallelism holds about 10 bytes for each parameter on every chip."""
    if case.chip is None or not trains_all_by_adam(case):
        return None
    need = ADAM_BYTES * case.code.parameters
    if need <= case.chip.memory_bytes:
        return None
    if need <= 0.7 * case.fewest * case.chip.memory_bytes:
        return Finding("suggest", f"one chip cannot hold Adam for {case.code.parameters / 1e9:.3g}B parameters: shard it (FSDP)")
    return Finding(
        "warn",
        f"Adam holds about {need / 1e9:,.0f} GB for {case.code.parameters / 1e9:.3g}B parameters, a chip has "
        f"{case.chip.memory_bytes / 1e9:.0f} GB: shard weights and states (FSDP), or train adapters only",
    )


@rule("R075", facts(
    "comm_overhead", "suggest", "no gather of weights", BOOK, PRACTICE, explains=True, kinds=("gpu", "tpu", "other"),
))
def what_fits_one_chip_is_replicated(case: Case) -> Finding | None:
    """A model that fits one chip runs fastest as plain data parallelism."""
    if case.chip is None or case.most < 2:
        return None
    each = ADAM_BYTES if trains_all_by_adam(case) else parameter_bytes(case.workload)
    need = each * case.code.parameters
    if need > 0.5 * case.chip.memory_bytes or case.workload.batch < 2:
        return None
    return Finding("suggest", "the model fits one chip: give each its own copy and a part of the batch, and shard nothing")


@rule("R076", facts(
    "comm_overhead", "warn", "tokens on a chip: v5p 850 on 3 axes, v5e 1,095 on 2, v6e 2,550 on 2, v7 3,850 on 3",
    f"{BOOK}; {TABLE}",
    SILICON, explains=True, kinds=TPU_ONLY,
))
def few_tokens_wait_for_gathers(case: Case) -> Finding | None:
    """FSDP over TPU links needs enough tokens on each chip to hide its gathers."""
    if case.key not in AXIS_TOKENS or case.most < 2 or not _transforms(case):
        return None
    each, axes = AXIS_TOKENS[case.key]
    own = _tokens(case, case.most)
    if own >= each / axes:
        return None
    return Finding(
        "warn",
        f"{own:,.0f} tokens on each of {case.most} chips: below {each / axes:,.0f} (all {axes} axes) data parallelism and FSDP "
        "wait for their links",
    )


@rule("R077", facts(
    "comm_overhead", "suggest", "down to 2 x 2,550^2 / F, about 400 tokens; computed from the case", BOOK, SILICON, explains=True,
    kinds=TPU_ONLY,
))
def tensor_parallelism_takes_over(case: Case) -> Finding | None:
    """FSDP together with tensor parallelism stays efficient with fewer tokens on a v5p chip."""
    hidden = case.code.graph.hidden
    if case.key != "tpu-v5p" or case.most < 2 or hidden is None or not _transforms(case):
        return None
    own, least = _tokens(case, case.most), 2 * 2550**2 / hidden
    if not least <= own < 850:
        return None
    return Finding(
        "suggest",
        f"with {own:,.0f} tokens on a chip mix FSDP and tensor parallelism: that holds down to {least:,.0f}",
    )


@rule("R078", facts(
    "comm_overhead", "suggest", "degree at most axes x F / 2,550, normally 8 to 16; computed from the case", BOOK, SILICON,
    explains=True, kinds=TPU_ONLY,
))
def tensor_degree_has_a_limit(case: Case) -> Finding | None:
    """Tensor parallelism on TPU is bound by links beyond a degree that grows with the width of the MLP."""
    hidden = case.code.graph.hidden
    if case.key not in AXIS_TOKENS or case.most < 8 or hidden is None or not _transforms(case):
        return None
    each, axes = AXIS_TOKENS[case.key]
    most = int(axes * hidden / each)
    if most >= case.most:
        return None
    return Finding(
        "suggest",
        f"keep the tensor degree at {max(1, most)} or less: an MLP of {hidden:,} on {axes} axes is bound by links beyond that",
    )


@rule("R079", facts(
    "interconnect", "warn", "450 to 900 GB/s inside against 50 GB/s for each GPU between nodes; computed from the case", STAS,
    SILICON,
    explains=True, kinds=("gpu",),
))
def tensor_parallelism_stays_inside(case: Case) -> Finding | None:
    """Tensor parallelism across GPU nodes leaves the fast domain."""
    domain = None if case.chip is None else case.chip.max_domain_chips
    if case.chip is None or domain is None or domain < 2 or case.most <= domain:
        return None
    inside, between = case.chip.link_bytes_per_s, case.chip.internode_bytes_per_s
    rates = "" if not inside or not between else (
        f" ({inside / 1e9:.0f} GB/s inside, {between / (case.chip.chips_per_host or domain) / 1e9:.0f} GB/s for each GPU beyond)"
    )
    return Finding(
        "warn",
        f"{case.most} GPUs are more than the {domain} of one fast domain: keep tensor and expert parallelism inside{rates}",
    )


@rule("R080", facts(
    "interconnect", "warn", "all-reduce of 2 GPUs 47.7 GB/s, of 8 312.9 GB/s", STAS, SILICON, explains=True, kinds=("gpu",),
))
def part_of_an_mi300x_node_is_slow(case: Case) -> Finding | None:
    """A part of an MI300X node sums over a few direct links only."""
    parts = [count for count in case.counts if 1 < count < 8]
    if case.key not in ("mi300x", "mi325x") or not parts:
        return None
    return Finding(
        "warn",
        f"{parts[0]} of the 8 GPUs of a node have only their direct links (47.7 GB/s for 2 against 312.9 GB/s for 8): take 1 or "
        "8",
    )


@rule("R081", facts(
    "interconnect", "warn", "32 to 63 GB/s", TABLE, SILICON, explains=True, kinds=("gpu",),
))
def pcie_carries_data_parallelism_only(case: Case) -> Finding | None:
    """GPUs joined by PCIe only suit data parallelism, adapters and jobs of one GPU."""
    chip = case.chip
    name = "" if chip is None else (chip.link_name or "").lower()
    if chip is None or case.most < 2 or not ("pcie" in name or "bridge" in name):
        return None
    if "bridge" in name:
        return Finding(
            "warn",
            f"{chip.name} is joined by bridges of {chip.max_domain_chips} where they are plugged, and by PCIe else: ask for them",
        )
    rate = "" if chip.link_bytes_per_s is None else f" ({chip.link_bytes_per_s / 1e9:.0f} GB/s)"
    peers = " without peer access" if "no P2P" in (chip.link_name or "") else ""
    return Finding(
        "warn",
        f"{chip.name} has PCIe{rate}{peers} between GPUs: prefer data parallelism, adapters or one GPU to tensor parallelism "
        "and FSDP",
    )


@rule("R082", facts(
    "interconnect", "warn", "bound by arithmetic above about 76,000 tokens on a v5p pod", BOOK, SILICON, explains=True,
    kinds=TPU_ONLY,
))
def sharding_stays_in_a_pod(case: Case) -> Finding | None:
    """Sharded weights are not gathered over the data centre network between TPU pods."""
    domain = None if case.chip is None else case.chip.max_domain_chips
    if domain is None or case.most <= domain or not case.workload.trains:
        return None
    return Finding(
        "warn",
        f"{case.most} chips are several pods of {domain}: shard inside a pod and put plain data parallelism between them, with "
        "about 76,000 tokens or more on a pod",
    )


@rule("R083", facts(
    "topology", "warn", "half of the collective rate", BOOK, SILICON, explains=True, kinds=TPU_ONLY,
))
def small_slices_have_no_rings(case: Case) -> Finding | None:
    """A v5e or v6e slice without an axis of 16 has no wrap-around links."""
    shapes = ((count, slice_of(case.key, count)) for count in case.counts if count > 8)
    small = [count for count, shape in shapes if shape is not None and not any(shape.wraps)]
    if case.key not in FLAT_TPUS or not small:
        return None
    return Finding(
        "warn",
        f"a slice of {small[0]} chips has no axis of 16 and so no wrap-around links: its collectives run at half the rate of a "
        "full pod's",
    )


@rule("R084", facts(
    "topology", "warn", "256 chips in a pod", BOOK, SILICON, explains=True, kinds=TPU_ONLY,
))
def pods_of_v5e_and_v6e_end_at_256(case: Case) -> Finding | None:
    """More than 256 chips of v5e or v6e are several slices joined by the data centre network."""
    if case.key not in FLAT_TPUS or case.most <= 256:
        return None
    return Finding(
        "warn",
        f"{case.most} chips are {-(-case.most // 256)} slices of 256: Multislice over the data centre network is needed",
    )


@rule("R085", facts(
    "comm_overhead", "warn", "about 1 us for each hop", BOOK, SILICON, explains=True, kinds=TPU_ONLY,
))
def small_collectives_wait_for_hops(case: Case) -> Finding | None:
    """The small collectives of a decode step are bound by latency."""
    if case.most < 4 or not case.code.graph.decodes:
        return None
    return Finding(
        "warn",
        f"sampling over {case.most} chips exchanges little and waits about 1 us for each hop: latency, not rate, decides",
    )


@rule("R086", facts(
    "host_memory", "warn", "15 GB/s for each chip (v4, v5), 32 GB/s (v6e)", BOOK, SILICON, explains=True, kinds=TPU_ONLY,
))
def host_memory_is_far_from_a_tpu(case: Case) -> Finding | None:
    """Offloading to the memory of a TPU's host goes over PCIe."""
    found = (*case.code.names(*OFFLOADS), *case.needs(*OFFLOADS))
    if case.key not in HOST_RATES or not found:
        return None
    return Finding("warn", f"{', '.join(dict.fromkeys(found))} moves over PCIe at {HOST_RATES[case.key]} GB/s for each chip")


@rule("R087", facts(
    "op_not_lowered", "exclude", "NotImplementedError in 0.2.0", "torch_tpu 0.2.0 wheel", PACKAGES, kinds=TPU_ONLY,
    runtimes=("torch-tpu",),
))
def torch_tpu_sends_nothing_point_to_point(case: Case) -> Finding | None:
    """TorchTPU 0.2.0 has no send and receive, and so no pipeline parallelism between processes."""
    found = (*case.code.names(*POINT_TO_POINT), *case.needs(*POINT_TO_POINT))
    if not found or case.at_least("torch_tpu", "0.2.1"):
        return None
    return Finding(
        "exclude",
        f"{', '.join(dict.fromkeys(found))}: TorchTPU 0.2.0 raises NotImplementedError for send and receive; use FSDP2 or "
        "tensor parallelism",
    )


@rule("R088", facts(
    "topology", "exclude", "6,144 chips in one job, 18,432 as Multislice", MACHINES, PLATFORM, kinds=TPU_ONLY,
))
def v5p_jobs_end_at_6144(case: Case) -> Finding | None:
    """The largest single job on v5p has 6,144 chips."""
    if case.key != "tpu-v5p" or case.fewest <= 6144:
        return None
    limit = "no more than 18,432 even as Multislice" if case.fewest > 18432 else "plan Multislice jobs of at most 6,144 each"
    return Finding("exclude", f"{case.fewest} chips of v5p are more than the 6,144 of one job: {limit}")
