"""Rules of models and training loops: what has to be written anew when the framework changes."""

from functools import partial

from intake.code.rules.declare import JAX_DOCS, KERAS_3, TORCH_DOCS, TORCH_TPU, XLA_DOCS, Rule, declared

_rule = partial(declared, "training")
_FLAX = "write it in Flax NNX or Keras 3; take the weights over by name"
_TO = f"{TORCH_DOCS}; {JAX_DOCS}"

RULES: tuple[Rule, ...] = (
    _rule("torch-module", "a model or layer of PyTorch", _TO, (2, 6, 0.5, 3), {
        "J": ("work", "has to be written for JAX, or run by torchax", _FLAX), "F": ("work", "has to be written anew", _FLAX),
    }),
    _rule("torch-optimizer", "an optimizer of PyTorch", _TO, (0.25, 1, 0.1, 0.25), {
        "J": ("work", "optimizers are pure functions", "use optax; state does not carry over"),
        "F": ("work", "the state does not carry over", "use the other framework's optimizer, compare a short run"),
    }),
    _rule("torch-scheduler", "a learning-rate schedule of PyTorch", _TO, (0.25, 1, 0.1, 0.25), {
        "J": ("work", "schedules are functions of the step", "use an optax schedule"), "F": ("work", "written otherwise",
            "use its schedule"),
    }),
    _rule("torch-backward", "gradients by backward or autograd.grad", _TO, (1, 4, 0.25, 1), {
        "J": ("work", "gradients are of functions, not of tensors", "jax.value_and_grad of a pure loss function"),
        "F": ("work", "written otherwise", "write the training step anew"),
    }),
    _rule("torch-hook", "hooks on modules or tensors", f"{_TO}; {TORCH_TPU}", (1, 4, 0.5, 2), {
        "J": ("work", "there are no hooks", "return what is needed from the function"),
        "TX": ("check", "break compiled graphs", "keep them out of the compiled step"), "F": ("work", "there are no hooks",
            "return the values"),
    }),
    _rule("in-place", "a tensor is changed in place", f"{JAX_DOCS}; {XLA_DOCS}", (0.25, 1, 0.02, 0.15), {
        "J": ("work", "arrays do not change", "write x = x.at[...].set(...) or x = f(x)"),
        "TX": ("none", "is made functional by the compiler", ""), "F": ("work", "tensors of other frameworks do not change",
            "assign the result"),
    }),
    _rule("torch-compile", "torch.compile", f"{TORCH_DOCS}; {TORCH_TPU}", (0.25, 1, 0.1, 0.25), {
        "J": ("work", "compiled by jax.jit", "jit the whole step"), "T": ("none", "the way to peak speed on TorchTPU", ""),
        "X": ("check", "takes backend openxla", "torch_xla traces without it"), "F": ("work", "compiled otherwise",
            "use its compiler"),
    }),
    _rule("torch-jit", "TorchScript", f"{TORCH_DOCS}; {XLA_DOCS}", (0.5, 3, 0.1, 0.5), {
        "J": ("work", "unknown to JAX", "leave it out and jit the step"),
        "T": ("work", "TorchScript is deprecated; TorchTPU compiles by torch.compile",
            "torch.compile, torch.export for what is deployed"),
        "X": ("check", "is passed over by lazy tracing", "leave it out"),
        "AN": ("check", "TorchScript is deprecated", "torch.compile, torch.export for what is deployed"),
        "F": ("work", "unknown there", "leave it out"),
    }),
    _rule("torch-graph", "torch.fx or torch.export", TORCH_DOCS, (1, 8, 0.25, 1), {
        "J": ("work", "unknown to JAX", "work on the jaxpr, or leave it out"), "F": ("work", "unknown there", "leave it out"),
        "X": ("check", "graphs of torch.fx are traced again by XLA", "test it"),
    }),
    _rule("torch-remat", "activations are recomputed (torch.utils.checkpoint)", f"{TORCH_DOCS}; {XLA_DOCS}; {JAX_DOCS}", (0.5, 2,
        0.1, 0.5), {
        "J": ("work", "done by a transformation", "jax.checkpoint with a policy"),
        "X": ("work", "the compiler may undo it", "torch_xla.utils.checkpoint"), "T": ("check",
            "not verified for TorchTPU 0.2.0", "watch memory"),
        "F": ("work", "done otherwise", "use its means"),
    }),
    _rule("flax-module", "a model or layer of Flax, Haiku or Equinox", JAX_DOCS, (2, 6, 0.5, 3), {
        "TX": ("work", "has to be written for PyTorch", "write it as torch.nn.Module; take the weights over by name"),
        "F": ("work", "has to be written anew", "write it in the other framework"),
    }),
    _rule("jax-transform", "a transformation of JAX (jit, grad, vmap, scan)", JAX_DOCS, (1, 4, 0.1, 0.5), {
        "TX": ("work", "written otherwise", "torch.compile, torch.func"), "F": ("work", "written otherwise",
            "use its compiler and gradients"),
    }),
    _rule("keras-model", "a model or layer of Keras", KERAS_3, (0.5, 3, 0.25, 1.5), {
        "J": ("check", "Keras 3 runs on JAX, when no TensorFlow is called within",
            "set KERAS_BACKEND=jax, replace tf.* by keras.ops"),
        "TX": ("work", "Keras on torch has no TPU path", "use the JAX backend there"),
        "F": ("check", "Keras 3 runs on JAX, TensorFlow and PyTorch", "replace calls of one backend by keras.ops"),
    }),
)
