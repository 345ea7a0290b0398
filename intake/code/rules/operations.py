"""Rules of operations that a target lacks, emulates or runs far below its peak."""

from functools import partial

from intake.code.rules.declare import JAX_DOCS, TPU_GUIDE, XLA_DOCS, Rule, declared

_rule = partial(declared, "operations")
_FP64 = f"{TPU_GUIDE}; jax-ml/jax issues 10158, 19769"
_VECTOR = "work of the vector units, far below the peak of the matrix units"

RULES: tuple[Rule, ...] = (
    _rule("fp64", "64-bit floating point", _FP64, (1, 8, 0.1, 1), {
        "JTX": ("work", "TPUs have no fp64 units: emulated for some operations, refused for others",
            "use fp32, or keep that part on the host"),
        "AN": ("check", "full rate only on some data-centre chips", "see the chip's fp64 rate"),
    }),
    _rule("complex", "64-bit complex numbers", _FP64, (0.5, 6, 0.1, 1), {
        "J": ("check", "complex64 is supported, as pairs of vectors", "real pairs are faster: rotate by sine and cosine"),
        "TX": ("work", "complex support is partial", "write it with pairs of real numbers"),
        "A": ("check", "supported; some kernels lack", "test it"), "F": ("check", "support differs", "test it"),
    }),
    _rule("complex128", "128-bit complex numbers", _FP64, (2, 16, 0.5, 4), {
        "JTX": ("blocks", "complex128 is refused on TPU", "use complex64 or pairs of real numbers, or keep it on the host"),
        "F": ("check", "support differs", "test it"),
    }),
    _rule("fft", "Fourier transforms", f"{_FP64}; {JAX_DOCS}", (0.5, 6, 0.25, 2), {
        "JTX": ("check", f"complex64 only; {_VECTOR}", "see its share of the time; short ones are faster as a matrix product"),
        "A": ("check", "rocFFT stands in", "test it"), "F": ("check", "conventions of length and scale differ",
            "compare with a reference"),
    }),
    _rule("linalg", "decompositions and solvers", f"{JAX_DOCS}; {XLA_DOCS}", (1, 8, 0.5, 3), {
        "J": ("check", "symmetric ones and QR are there, iterative and slow", "see its share of the time"),
        "TX": ("work", "some are not lowered and fall back to the host", "move them out of the step"),
        "A": ("check", "rocSOLVER or MAGMA stands in; some are slow", "time it"), "F": ("check", "signs and orders may differ",
            "compare with a reference"),
    }),
    _rule("eig", "eigenvalues of a matrix that is not symmetric, Schur", "jax documentation, jax._src.lax.linalg (@cec06d1)", (2,
        16, 1, 6), {
        "JTX": ("blocks", "not there on TPU: eig runs on CPU and GPU, Schur on CPU only",
            "keep it on the host, or use a symmetric form"),
        "A": ("check", "runs by MAGMA or on the host", "time it"), "F": ("check", "support differs", "test it"),
    }),
    _rule("conv3d", "3-D convolutions", "framework_support of the catalog; XLA", (0.25, 3, 0.1, 0.5), {
        "JTX": ("check", "lowered onto the matrix units; few channels are padded to 128, or 256 on v6e and v7",
            "use channels of 64 or more"),
        "A": ("check", "MIOpen searches kernels at first use, which takes long", "keep its database"), "F": ("check",
            "layouts differ", "check the order of axes"),
    }),
    _rule("sort", "sorting, top-k, medians", TPU_GUIDE, (0.25, 4, 0.1, 0.5), {
        "JTX": ("check", _VECTOR, "jax.lax.approx_max_k where an approximation will do"), "F": ("check",
            "ties are ordered otherwise", "do not rely on ties"),
    }),
    _rule("gather-scatter", "gather, scatter, index_select and alike", "jax-ml/jax issues 7502, 10891", (0.5, 4, 0.1, 1), {
        "J": ("check", f"{_VECTOR}; index tensors are padded to tiles (32 times in one case)",
            "one-hot products, or SparseCore for embeddings"),
        "TX": ("check", f"{_VECTOR}; index tensors are padded to tiles", "one-hot products for short axes"),
        "A": ("none", "runs", ""), "F": ("check", "named and ordered otherwise", "compare with a reference"),
    }),
    _rule("sparse-tensor", "sparse tensors", f"{JAX_DOCS}; {XLA_DOCS}", (2, 16, 0.5, 3), {
        "J": ("work", "BCOO is experimental and slow", "dense with a mask, or segment sums"),
        "TX": ("work", "sparse layouts are not supported on XLA devices", "dense with a mask, or index_add"),
        "A": ("check", "hipSPARSE stands in", "test it"), "F": ("work", "support differs", "dense with a mask"),
    }),
    _rule("recurrent", "a recurrent layer: a long chain of small steps", f"{TPU_GUIDE}; {XLA_DOCS}", (1, 6, 0.5, 2), {
        "J": ("check", "a scan; each step is too small for the matrix units", "larger batches; scan over time once"),
        "TX": ("check", "unrolled or scanned; compiles long and runs in small steps", "larger batches, fixed lengths"),
        "A": ("check", "MIOpen has fewer fused forms", "time it"), "F": ("work", "gate orders and biases differ",
            "convert weights with a test"),
    }),
)
