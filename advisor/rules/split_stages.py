"""Rules about jobs that split by stage: actors and learners, preparing and training, training and serving, checkpoints."""

from advisor.rules import Finding, job_rule, split_rule
from advisor.rules.ages import PACKAGES, PLATFORM, PRACTICE, facts
from advisor.rules.case import Code
from advisor.rules.split_case import SplitCase, moves_checkpoints, side_of
from core.format import memory

DERIVED = "derived from the accelerator table"
WHEN_TPU = 'cloud.google.com/tpu/docs/intro-to-tpu, "When to use TPUs" (2026)'
METADATA = "PyPI metadata and pip resolver, 2026-11-30"
MATRICES = "vllm tpu-inference support matrices (@b8692ff, 2026-08-22)"
SUPPORT = "framework support table"
CPU_ENVIRONMENTS = (
    "gym", "gymnasium", "ale-py", "atari-py", "pettingzoo", "dm-control", "procgen", "mujoco", "mujoco-py", "minigrid", "envpool",
    "pybullet", "vizdoom", "nle", "retro", "pyspiel", "open-spiel", "pysc2",
)
JAX_ENVIRONMENTS = ("brax", "gymnax", "jumanji", "pgx", "mujoco-mjx", "craftax", "jaxmarl", "navix", "xland-minigrid")
GPU_ENVIRONMENTS = ("isaacgym", "isaac-gym", "isaaclab", "isaacsim", "isaacgymenvs", "warp-lang", "madrona", "maniskill",
"genesis-world")
GPU_PREPARATION = ("nvidia-dali", "dali", "cudf", "cuml", "rapids", "nvtabular", "nemo-curator", "pynvvideocodec",
"nvimagecodec", "nvdec")
SEARCHES = ("optuna", "hyperopt", "ray-tune", "nevergrad", "ax-platform", "keras-tuner", "syne-tune", "smac", "vizier",
"google-vizier")
ROLLOUTS = ("trl", "verl", "openrlhf", "tunix", "google-tunix", "nemo-rl", "vllm", "sglang", "slime", "areal")
LOCKED_CHECKPOINTS = ("deepspeed", "pickle", "torch-xla")
NUMBERED = ("int8", "int4", "fp8", "fp4")


def _asks(code: Code, kind: str) -> bool:
    """Whether the user named a pool of a kind of chips."""
    return any(side_of(accelerator, count).kind == kind for accelerator, count in code.asked)


def _is_rl(code: Code) -> bool:
    return code.workload.task == "rl"


@job_rule("R115", facts(
    "stage_split", "suggest", "40 to 80 % cheaper; Atari-57 three times as fast", "SEED RL, arXiv:1910.06591", PRACTICE,
))
def cpu_environments_feed_a_learner(code: Code) -> Finding | None:
    """Environments on CPUs feed one accelerator that both acts and learns (SEED RL)."""
    found = code.needs(*CPU_ENVIRONMENTS)
    fed = found or _asks(code, "cpu") or code.workload.data.host_vcpus is not None
    if not _is_rl(code) or not fed or code.needs(*JAX_ENVIRONMENTS, *GPU_ENVIRONMENTS):
        return None
    which = f" ({', '.join(found)})" if found else ""
    return Finding(
        "suggest",
        f"keep the environments{which} on CPUs in large batches, and inference and learning on one accelerator (SEED RL); "
        "measure both rates, since the slower sets the pace",
    )


@job_rule("R116", facts("stage_split", "suggest", "no transfer at all", "Podracer, arXiv:2104.06272", PRACTICE))
def jax_environments_live_with_the_learner(code: Code) -> Finding | None:
    """Environments in JAX run on the same cores as the learner (Anakin)."""
    found = code.needs(*JAX_ENVIRONMENTS)
    if not _is_rl(code) or not found:
        return None
    return Finding(
        "suggest",
        f"{', '.join(found)} runs in JAX: put thousands of environments and the learner on the same cores (Anakin)",
    )


@job_rule("R117", facts("stage_split", "suggest", "no link between vendors", "Podracer, arXiv:2104.06272", PRACTICE))
def tpu_hosts_split_actors_and_learners(code: Code) -> Finding | None:
    """With any environments on a TPU pod, the cores of one host are split into actors and learners (Sebulba)."""
    if not _is_rl(code) or not _asks(code, "tpu") or code.needs(*JAX_ENVIRONMENTS) or code.graph.vocabulary is not None:
        return None
    return Finding("suggest", "split the cores of each TPU host into actors and learners, with environments on its CPU (Sebulba)")


@job_rule("R118", facts(
    "stage_split", "suggest", "2 bytes a parameter each push: 8B 16 GB, 0.6 s at 25 GB/s; computed from the case", DERIVED,
    PRACTICE,
))
def rollouts_and_learner_may_part(code: Code) -> Finding | None:
    """Rollouts of a language model may run on one kind of chip and the learner on another; weights cross in every step."""
    if not _is_rl(code) or code.graph.vocabulary is None:
        return None
    pushed = 2.0 * code.parameters
    return Finding(
        "suggest",
        f"rollouts (vLLM, on GPU or TPU) and learner may stand on different chips: {memory(pushed)} of weights cross in each "
        f"step, {pushed / 25e9:.2g} s at 25 GB/s",
    )


@split_rule("R119", facts("precision_default", "warn", "log-probabilities differ", DERIVED, PRACTICE))
def rollouts_differ_in_the_last_bits(case: SplitCase) -> Finding | None:
    """A rollout engine on another kind of chip than its trainer gives other log-probabilities."""
    if not _is_rl(case.code) or not case.unlike or case.has("cpu") or case.code.graph.vocabulary is None:
        return None
    return Finding(
        "warn",
        "log-probabilities of rollouts and trainer differ between kinds of chips: correct by importance weights",
    )


@job_rule("R120", facts("stage_split", "suggest", "actors on the GPU", DERIVED, PRACTICE))
def gpu_environments_keep_their_gpu(code: Code) -> Finding | None:
    """Environments that are simulated on GPUs keep their actors there."""
    found = code.needs(*GPU_ENVIRONMENTS)
    if not _is_rl(code) or not found:
        return None
    return Finding(
        "suggest",
        f"{', '.join(found)} simulates on NVIDIA GPUs: keep actors there; the learner may be a GPU or a TPU",
    )


@job_rule("R121", facts("stage_split", "suggest", "shards in an object store", f"{WHEN_TPU}; {METADATA}", PLATFORM))
def gpus_prepare_and_tpus_train(code: Code) -> Finding | None:
    """Preparation with CUDA libraries is a stage of its own that writes shards."""
    found = code.needs(*GPU_PREPARATION)
    if not found or not (code.workload.task == "preprocess" or code.workload.trains):
        return None
    return Finding(
        "suggest",
        f"{', '.join(found)} needs NVIDIA GPUs: let a GPU stage write ArrayRecord or Parquet shards, and train from those on "
        "whatever is best",
    )


@split_rule("R122", facts(
    "export_portability", "suggest", "bf16 safetensors", "MaxText guides/checkpointing_solutions/convert_checkpoint.md", PACKAGES,
))
def tpu_models_are_served_on_gpus(case: SplitCase) -> Finding | None:
    """A model that was trained on TPU is served on GPUs from converted weights."""
    if not case.serves_second or case.sides[0].kind != "tpu" or case.sides[1].kind != "gpu":
        return None
    return Finding(
        "suggest",
        "convert with MaxText's to_huggingface to safetensors in bf16 and serve with vLLM; quantise anew for the GPU",
    )


@split_rule("R123", facts(
    "export_portability", "suggest", "safetensors as they are", f"vllm-torchtpu README (2026); {MATRICES}", PACKAGES,
))
def gpu_models_are_served_on_tpus(case: SplitCase) -> Finding | None:
    """A model that was trained in PyTorch on GPUs is served on TPUs from the same weights."""
    if not case.serves_second or case.sides[0].kind != "gpu" or case.sides[1].kind != "tpu":
        return None
    return Finding(
        "suggest",
        "vllm-torchtpu and vLLM for JAX load Hugging Face safetensors unchanged: serve on TPU without conversion",
    )


@split_rule("R124", facts(
    "quant_support", "warn", "int8 on v5, v6 and H100; fp8 on v7 and B300; fp4 on B200",
    "jax 0.12.0.1 tpu_info; ai-dynamo/aiconfigurator system tables (@095f58a)", PACKAGES,
))
def quantised_weights_stay_where_they_are(case: SplitCase) -> Finding | None:
    """A quantised checkpoint does not move between kinds of chips."""
    if case.code.workload.dtype not in NUMBERED or not case.unlike or not case.joined:
        return None
    return Finding(
        "warn",
        f"{case.code.workload.dtype} weights do not move between {case.names}: keep a bf16 master and quantise for each",
    )


@split_rule("R125", facts(
    "export_portability", "suggest", "Orbax with target sharding, safetensors or DCP", METADATA, PACKAGES,
))
def checkpoints_must_open_on_both(case: SplitCase) -> Finding | None:
    """A checkpoint that must open on both sides is written in a form that names no device."""
    if len(case.kinds) < 2 or not moves_checkpoints(case) or case.code.workload.task == "preprocess":
        return None
    locked = case.code.needs(*LOCKED_CHECKPOINTS)
    avoid = f"; {', '.join(locked)} writes what opens only where it was written" if locked else ""
    return Finding(
        "suggest",
        f"for {case.names} write checkpoints that name no device: Orbax restored with the target's sharding, safetensors or "
        f"DCP{avoid}; try a restore before the first side is given up",
    )


@split_rule("R126", facts("export_portability", "warn", "weights only", DERIVED, PRACTICE))
def optimizer_state_stays_in_its_framework(case: SplitCase) -> Finding | None:
    """The state of an optimizer does not cross from one framework to another."""
    frameworks = {side.runtime.split("-")[0] for side in case.sides if side.runtime}
    if len(frameworks) < 2 or not case.code.workload.trains:
        return None
    return Finding(
        "warn",
        f"optimizer state does not cross between {' and '.join(sorted(frameworks))}: hand over weights only, and warm up anew",
    )


@split_rule("R127", facts(
    "framework_choice", "suggest", "JAX first-class on both, PyTorch with TorchTPU in beta", SUPPORT, PACKAGES,
))
def one_code_for_both_is_jax(case: SplitCase) -> Finding | None:
    """Where the same code must run on GPU and TPU, JAX is first-class on both."""
    if not case.gpu_and_tpu or not case.joined:
        return None
    return Finding(
        "suggest",
        "for one code on GPU and TPU take JAX, Flax or Keras on JAX, first-class on both; PyTorch with TorchTPU, a beta, comes "
        "second",
    )


@split_rule("R128", facts("serving", "warn", "keys and values are laid out otherwise", MATRICES, PACKAGES))
def prefill_and_decode_stay_with_one_vendor(case: SplitCase) -> Finding | None:
    """Prefill on one vendor's chips and decode on another's is not supported."""
    if not case.planned or not case.unlike or not case.code.graph.decodes or case.code.workload.trains:
        return None
    return Finding(
        "warn",
        f"prefill and decode over {case.names} is not supported, since keys and values are laid out otherwise: part them within "
        "one vendor (vLLM on TPU does over its data centre network)",
    )


@split_rule("R129", facts("serving", "suggest", "whole requests", "llm-d guides", PACKAGES))
def requests_are_routed_whole(case: SplitCase) -> Finding | None:
    """Traffic is split between GPU and TPU fleets by whole requests."""
    if not case.gpu_and_tpu or case.code.workload.task != "serve" or not case.planned or case.code.graph.vocabulary is None:
        return None
    return Finding(
        "suggest",
        "route whole requests, long prompts here and long answers there, to GPU and TPU fleets behind one gateway (llm-d knows "
        "GPU and TPU v6e and v7)",
    )


@job_rule("R130", facts("none", "suggest", "no link needed", DERIVED, PRACTICE))
def independent_jobs_use_whatever_is_free(code: Code) -> Finding | None:
    """Searches, ensembles and evaluations are independent jobs that use any island."""
    found = (*code.needs(*SEARCHES), *code.names("hyperparameter-search", "sweep", "ensemble"))
    if not found:
        return None
    return Finding(
        "suggest",
        f"{', '.join(found)}: the trials are independent, so that each may run on whichever chip is free, without a link "
        "between them",
    )
