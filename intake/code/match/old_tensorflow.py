"""Names that TensorFlow 1 had and TensorFlow 2 has only below `tf.compat.v1`.

Source: the symbol map of tf_upgrade_v2 (tensorflow/tools/compatibility/renames_v2.py and all_renames_v2.py).
"""

from functools import lru_cache

_BELOW = ("flags", "app", "logging", "layers", "gfile", "python_io", "resource_loader",
          "spectral", "manip", "user_ops", "graph_util", "summary.FileWriter", "summary.merge", "summary.merge_all",
          "saved_model.simple_save", "saved_model.builder", "saved_model.signature_def_utils", "saved_model.tag_constants",
          "saved_model.signature_constants", "nn.rnn_cell", "data.make_one_shot_iterator", "data.make_initializable_iterator",
          "nn.softmax_cross_entropy_with_logits_v2", "nn.dynamic_rnn", "nn.static_rnn", "nn.bidirectional_dynamic_rnn",
          "nn.xw_plus_b",
          "nn.quantized_conv2d", "nn.batch_norm_with_global_normalization")
_TRAIN = ("AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "FtrlOptimizer", "GradientDescentOptimizer",
    "MomentumOptimizer",
          "Optimizer", "RMSPropOptimizer", "ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer",
          "SyncReplicasOptimizer", "Saver",
          "Scaffold", "MonitoredTrainingSession", "MonitoredSession", "Supervisor", "SessionRunHook", "SessionRunArgs",
          "StopAtStepHook",
          "CheckpointSaverHook", "LoggingTensorHook", "StepCounterHook", "SummarySaverHook", "NanTensorHook", "get_global_step",
          "get_or_create_global_step", "create_global_step", "global_step", "init_from_checkpoint", "cosine_decay",
          "exponential_decay",
          "polynomial_decay", "piecewise_constant", "natural_exp_decay", "inverse_time_decay", "linear_cosine_decay",
          "import_meta_graph",
          "export_meta_graph", "start_queue_runners", "batch", "shuffle_batch", "string_input_producer", "slice_input_producer",
          "QueueRunner", "ProfilerHook", "FeedFnHook", "GlobalStepWaiterHook", "FinalOpsHook", "SecondOrStepTimer",
          "SessionManager",
          "assert_global_step", "warm_start", "ChiefSessionCreator", "cosine_decay_restarts", "NewCheckpointReader",
          "replica_device_setter", "range_input_producer", "add_queue_runner", "SessionRunContext", "SessionRunValues",
          "checkpoint_exists",
          "update_checkpoint_state", "remove_checkpoint", "LooperThread", "WorkerSessionCreator", "get_checkpoint_mtimes")
_TOP = ("Session", "InteractiveSession", "ConfigProto", "GPUOptions", "OptimizerOptions", "RunOptions", "RunMetadata",
    "placeholder",
        "placeholder_with_default", "get_variable", "variable_scope", "get_variable_scope", "get_collection", "add_to_collection",
        "GraphKeys", "trainable_variables", "global_variables", "local_variables", "all_variables",
        "global_variables_initializer",
        "local_variables_initializer", "variables_initializer", "initialize_all_variables", "tables_initializer", "assign",
        "assign_add",
        "assign_sub", "reset_default_graph", "get_default_graph", "set_random_seed", "random_uniform", "random_normal",
        "truncated_normal",
        "to_float", "to_int32", "to_int64", "to_double", "to_bfloat16", "log", "div", "sparse_placeholder",
        "sparse_tensor_to_dense",
        "sparse_to_dense", "sparse_tensor_dense_matmul", "FixedLenFeature", "VarLenFeature", "parse_single_example",
        "parse_example",
        "TFRecordReader", "WholeFileReader", "read_file", "decode_raw", "decode_csv", "string_to_number", "py_func",
        "variable_op_scope", "get_default_session", "enable_eager_execution", "disable_eager_execution",
        "disable_v2_behavior", "enable_v2_behavior", "enable_resource_variables", "disable_resource_variables", "no_regularizer",
        "get_local_variable", "make_template", "multinomial", "rsqrt", "is_nan", "is_inf", "is_finite", "ceil", "lbeta",
        "lgamma", "digamma",
        "matrix_band_part", "matrix_inverse", "matrix_diag", "matrix_determinant", "self_adjoint_eig", "cholesky", "qr", "fft",
        "ifft", "rint", "count_nonzero", "batch_gather", "scatter_update", "scatter_add", "scatter_nd_update", "Print",
        "space_to_batch",
        "depth_to_space", "space_to_depth", "unsorted_segment_sum", "add_check_numerics_ops", "assert_variables_initialized",
        "report_uninitialized_variables", "get_seed", "container", "colocate_with", "AUTO_REUSE", "FIFOQueue", "model_variables",
        "mod", "floordiv", "real", "imag", "angle", "conj", "random_crop", "random_shuffle", "verify_tensor_all_finite",
        "regex_replace", "string_split", "string_join", "substr", "string_to_hash_bucket_fast", "is_variable_initialized",
        "moving_average_variables", "get_session_handle", "Event", "Summary", "SummaryMetadata", "HistogramProto",
        "GraphDef", "MetaGraphDef", "NodeDef", "AttrValue", "uniform_unit_scaling_initializer", "glorot_uniform_initializer",
        "variance_scaling_initializer", "truncated_normal_initializer",
        "orthogonal_initializer", "image.resize_bilinear", "image.resize_images", "image.resize_nearest_neighbor",
        "image.resize_bicubic",
        "image.resize_image_with_crop_or_pad", "image.resize_image_with_pad",
        "image.resize_area", "logging", "get_summary_op", "merge_all_summaries", "scalar_summary",
        "arg_max", "arg_min", "complex_abs", "betainc", "zeta", "igamma", "polygamma", "quantize_v2", "dequantize",
        "Dimension", "wrap_function", "data.Iterator",
        "data.experimental.map_and_batch", "data.experimental.parallel_interleave", "data.experimental.shuffle_and_repeat",
        "compat.v1", "setdiff1d", "tensor_scatter_update", "to_complex64", "lin_space")
_NAMES = frozenset(_TOP) | {f"train.{name}" for name in _TRAIN}
_SHARED = ("losses", "metrics", "initializers")
"""Modules that both have: functions are of TensorFlow 1, classes of Keras."""


@lru_cache(maxsize=1 << 12)
def is_old(dotted: str) -> bool:
    """Whether a name below `tensorflow.` is of TensorFlow 1 only.

    Args:
        dotted: in the one spelling of `names.one_spelling`.
    """
    root, _, rest = dotted.partition(".")
    if root != "tensorflow" or not rest:
        return False
    if any(rest == name or rest.startswith(name + ".") for name in _BELOW):
        return True
    parts = rest.split(".")
    if parts[0] in _SHARED:
        return len(parts) > 1 and parts[1][:1].islower()
    return any(".".join(parts[:count]) in _NAMES for count in range(1, len(parts) + 1))
