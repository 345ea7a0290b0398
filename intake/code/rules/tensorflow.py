"""Rules of TensorFlow and Keras: what is of TensorFlow 1, of TPUs by TensorFlow, of GPUs by name, and of Keras 2."""

from functools import partial

from intake.code.rules.declare import KERAS_3, METADATA, TF_DOCS, Rule, declared

_rule = partial(declared, "tensorflow")
_FROZEN = f"{METADATA}; docs.cloud.google.com/tpu/docs/runtimes and tpu7x (2026)"
_KERAS_JAX = "Keras 3 on JAX, or JAX alone"

RULES: tuple[Rule, ...] = (
    _rule("tf1-api", "a name that only TensorFlow 1 has", f"{TF_DOCS}; tf_upgrade_v2", (4, 24, 0.1, 0.6), {
        "JTX": ("work", "graph-mode code has to be written anew", _KERAS_JAX), "F": ("work",
            "graph-mode code has to be written anew", _KERAS_JAX),
        "A": ("work", "TensorFlow 2 only: tensorflow-rocm", "tf_upgrade_v2, then by hand"),
        "N": ("work", "runs under tf.compat.v1 only; no CUDA 12 build of TensorFlow 1 exists", "tf_upgrade_v2, then by hand"),
    }),
    _rule("tf-contrib", "tf.contrib", TF_DOCS, (2, 16, 0.25, 2), {
        "JTXF": ("work", "was removed with TensorFlow 1", "find each part's successor, or write it anew"),
        "AN": ("blocks", "was removed in TensorFlow 2.0: the code does not start",
            "find each part's successor, or write it anew"),
    }),
    _rule("tf-session", "sessions and their settings", TF_DOCS, (2, 12, 0.25, 1), {
        "JTXF": ("work", "there are no sessions", "write steps as functions"), "AN": ("work", "under tf.compat.v1 only",
            "tf.function"),
    }),
    _rule("tf-estimator", "Estimators", TF_DOCS, (8, 40, 0.25, 1.5), {
        "JTXF": ("work", "model_fn and input_fn have to be taken apart", "a training loop or Keras fit"),
        "AN": ("blocks", "was removed in TensorFlow 2.16", "Keras fit, or a loop with tf.function"),
    }),
    _rule("tf-tpu-estimator", "TPUEstimator and its settings", _FROZEN, (8, 40, 0.25, 1.5), {
        "J": ("work", "Estimators are not supported on current TPU stacks", _KERAS_JAX), "TX": ("work",
            "has to be written for PyTorch", "write the loop anew"),
        "AN": ("work", "is for TPUs, and removed", "Keras fit under a strategy"), "F": ("work", "has to be written anew",
            _KERAS_JAX),
    }),
    _rule("tf-tpu-strategy", "TPUs by TensorFlow (TPUStrategy, cluster resolver)", _FROZEN, (2, 16, 0.25, 1), {
        "J": ("work", "TensorFlow on TPU is frozen at 2.20 and not there on TPU7x",
            "a mesh and shardings of JAX; Keras 3's distribution API"),
        "TX": ("work", "is of TensorFlow", "written anew with the framework's means"), "AN": ("work", "is for TPUs",
            "MirroredStrategy"),
        "F": ("work", "is of TensorFlow", "its own distribution"),
    }),
    _rule("tf-strategy", "a distribution strategy", TF_DOCS, (1, 8, 0.25, 1), {
        "J": ("work", "is of TensorFlow", "a mesh and shardings"), "TX": ("work", "is of TensorFlow", "DDP or FSDP2"),
        "A": ("check", "RCCL stands in", "test it"), "F": ("work", "is of TensorFlow", "its own distribution"),
    }),
    _rule("tf-py-function", "Python within the graph (py_function, numpy_function)", TF_DOCS, (1, 8, 0.5, 3), {
        "JTX": ("work", "runs Python on the host; not on TPU workers", "TensorFlow operations, or do it before training"),
        "AN": ("check", "holds the interpreter's lock; is not saved with the graph", "TensorFlow operations"),
        "F": ("work", "is of TensorFlow", "a host pipeline of the other framework"),
    }),
    _rule("tf-xla-compile", "compiled by XLA (jit_compile)", TF_DOCS, (0.25, 2, 0.1, 0.5), {
        "J": ("none", "a good sign: shapes are static already", ""), "TX": ("check", "written otherwise", "torch.compile"),
        "A": ("check", "XLA has a ROCm backend", "test it"), "F": ("check", "written otherwise", "its compiler"),
    }),
    _rule("tf-gpu-config", "GPUs are set up by TensorFlow", TF_DOCS, (0.25, 1, 0.05, 0.2), {
        "JTX": ("check", "without effect on TPU", "leave it out; hide GPUs from TensorFlow when it only feeds JAX"),
        "A": ("none", "ROCm devices answer to GPU", ""), "F": ("check", "set otherwise", "its own settings"),
    }),
    _rule("tf-device", "a GPU is named", TF_DOCS, (0.25, 1, 0.05, 0.2), {
        "JTX": ("work", "there is no such device", "leave placement to the framework"), "A": ("none",
            "ROCm devices answer to GPU", ""),
        "F": ("work", "named otherwise", "leave placement to the framework"),
    }),
    _rule("keras2-api", "a name or argument that Keras 3 dropped", KERAS_3, (1, 6, 0.1, 0.5), {
        "J": ("work", "Keras on JAX is Keras 3", "use its successor"), "TX": ("work", "has to be written for PyTorch",
            "write it anew"),
        "AN": ("work", "TensorFlow 2.16 and newer bring Keras 3", "use its successor, or tf_keras"), "F": ("work",
            "dropped in Keras 3", "use its successor"),
    }),
    _rule("keras-backend", "functions of keras.backend", KERAS_3, (0.5, 3, 0.1, 0.4), {
        "J": ("work", "left in Keras 3 as legacy, for some backends", "keras.ops"), "TX": ("work", "written anew",
            "torch operations"),
        "AN": ("check", "legacy in Keras 3", "keras.ops"), "F": ("work", "left in Keras 3 as legacy", "keras.ops"),
    }),
)
