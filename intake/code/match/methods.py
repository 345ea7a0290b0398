"""Methods that make a rule apply whatever they are called on, in files of the frameworks that have them."""

IN_PLACE = frozenset({
    "abs_", "add_", "addcdiv_", "addcmul_", "addmm_", "baddbmm_", "bernoulli_", "bitwise_and_", "bitwise_or_", "ceil_", "clamp_",
    "clamp_max_", "clamp_min_", "clip_", "copy_", "cos_", "detach_", "div_", "divide_", "eq_", "erf_", "exp_", "expm1_",
    "exponential_",
    "fill_", "fill_diagonal_", "floor_", "floor_divide_", "fmod_", "ge_", "gt_", "index_add_", "index_copy_", "index_fill_",
    "index_put_", "le_", "leaky_relu_", "lerp_", "log10_", "log1p_", "log2_", "log_", "logical_and_", "logical_not_",
    "logical_or_", "lt_",
    "masked_fill_", "masked_scatter_", "mul_", "multiply_", "mvlgamma_", "ne_", "neg_", "negative_", "normal_", "pow_", "put_",
    "random_",
    "reciprocal_", "relu_", "remainder_", "renorm_", "resize_", "resize_as_", "round_", "rsqrt_", "scatter_", "scatter_add_",
    "scatter_reduce_", "set_", "sigmoid_", "sign_", "sin_", "sqrt_", "square_", "squeeze_", "sub_", "subtract_", "t_", "tanh_",
    "transpose_", "tril_", "triu_", "true_divide_", "trunc_", "uniform_", "unsqueeze_", "xlogy_", "zero_", "geometric_",
    "cauchy_",
})
TORCH = {
    "item": "host-item", "tolist": "host-item", "cpu": "host-copy", "numpy": "host-copy",
    "nonzero": "nonzero", "argwhere": "nonzero", "unique": "unique", "unique_consecutive": "unique",
    "masked_select": "masked-select",
    "backward": "torch-backward", "double": "fp64",
    "gather": "gather-scatter", "scatter": "gather-scatter", "scatter_": "gather-scatter", "scatter_add": "gather-scatter",
    "scatter_add_": "gather-scatter", "index_select": "gather-scatter", "index_add": "gather-scatter",
    "index_add_": "gather-scatter",
    "index_copy": "gather-scatter", "index_copy_": "gather-scatter", "index_put_": "gather-scatter",
    "take_along_dim": "gather-scatter",
    "scatter_reduce": "gather-scatter", "scatter_reduce_": "gather-scatter",
    "topk": "sort", "argsort": "sort", "kthvalue": "sort",
    "register_forward_hook": "torch-hook", "register_forward_pre_hook": "torch-hook", "register_backward_hook": "torch-hook",
    "register_full_backward_hook": "torch-hook", "register_hook": "torch-hook",
    "register_post_accumulate_grad_hook": "torch-hook",
    "register_comm_hook": "torch-hook", "register_full_backward_pre_hook": "torch-hook",
    "svd": "linalg", "cholesky": "linalg", "inverse": "linalg", "pinverse": "linalg", "symeig": "linalg", "slogdet": "linalg",
    "logdet": "linalg", "to_sparse": "sparse-tensor", "to_dense": "sparse-tensor",
}
MXNET = {
    "asnumpy": "host-copy", "asscalar": "host-item", "wait_to_read": "host-copy", "hybridize": "mx-hybridize",
    "as_in_context": "mx-context", "as_in_ctx": "mx-context", "reset_ctx": "mx-context", "reset_device": "mx-context",
    "copyto": "mx-context", "attach_grad": "mx-autograd", "backward": "mx-autograd",
    "argsort": "sort", "topk": "sort", "item": "host-item",
}
JAX = {"item": "host-item", "tolist": "host-item", "argsort": "sort"}
TENSORFLOW = {"numpy": "host-copy"}
KERAS = {"fit_generator": "keras2-api", "evaluate_generator": "keras2-api", "predict_generator": "keras2-api",
         "predict_classes": "keras2-api", "predict_proba": "keras2-api"}
ALWAYS = {"cuda": "cuda-call", "asnumpy": "host-copy", "asscalar": "host-item"}
BY_FRAMEWORK = {"torch": TORCH, "mxnet": MXNET, "jax": JAX, "tensorflow": TENSORFLOW, "keras": KERAS}
WITHOUT_ARGUMENTS = frozenset({"item", "tolist", "cpu", "numpy", "double", "nonzero", "svd", "inverse", "cholesky", "to_dense",
    "logdet",
                               "slogdet", "asnumpy", "asscalar", "wait_to_read", "hybridize", "pinverse"})
"""Methods of tensors that are called with no or only named arguments: with others it is another class's method."""
KERAS_BACKEND = frozenset({
    "int_shape", "image_data_format", "permute_dimensions", "is_keras_tensor", "batch_flatten", "set_session", "get_session",
    "clear_session", "learning_phase", "set_learning_phase", "batch_dot", "expand_dims", "repeat_elements", "resize_images",
    "spatial_2d_padding",
    "temporal_padding", "gather", "get_value", "set_value", "batch_get_value", "batch_set_value", "count_params",
    "binary_crossentropy",
    "categorical_crossentropy", "sparse_categorical_crossentropy", "in_train_phase", "in_test_phase", "set_image_data_format",
    "normalize_data_format",
    "cast", "epsilon", "floatx", "mean", "sum", "abs", "square", "sqrt", "clip", "maximum", "minimum", "argmax", "concatenate",
    "reshape", "softmax",
    "sigmoid", "relu", "flatten", "ones_like", "zeros_like", "variable", "placeholder", "function", "round", "log", "pow",
    "greater", "equal",
    "switch", "dot", "one_hot", "ndim", "shape", "backend", "random_normal", "random_uniform", "l2_normalize", "conv2d",
    "pool2d", "bias_add",
    "max", "min", "exp", "all", "any", "stop_gradient", "gradients", "update", "update_add", "eval", "dtype", "transpose",
    "stack", "tile",
})
"""Functions of `keras.backend`, for code that is given the module as `K` or `backend` at run time."""
