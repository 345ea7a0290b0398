"""What the scan finds in small texts, and what it leaves alone."""

import json

import pytest

from core.finding import LOOP, ONCE, STEP, Finding, Scan
from intake.code import SourceFile, scan_tree


def scan(text: str, name: str = "train.py") -> Scan:
    return scan_tree([SourceFile(name, text)])


def rules(text: str, name: str = "train.py") -> set[tuple[str, int]]:
    return {(one.rule, one.line) for one in scan(text, name).findings}


def found(text: str, rule: str) -> Finding:
    return next(one for one in scan(text).findings if one.rule == rule)


@pytest.mark.parametrize(("text", "rule"), [
    ("import torch\nx = y.cuda()", "cuda-call"),
    ("import torch.cuda as tc\ntc.empty_cache()", "cuda-memory"),
    ("from torch import cuda\ncuda.synchronize()", "cuda-stream"),
    ("import torch\nx = y.to('cuda:1')", "cuda-device"),
    ("import torch\nd = f'cuda:{rank}'", "cuda-device"),
    ("import torch\nd = 'cuda:{}'.format(rank)", "cuda-device"),
    ("import torch\nd = 'cuda:{:d}'.format(rank)", "cuda-device"),
    ("import torch\nd = 'cuda:{args.rank!s:>2}'.format(args=a)", "cuda-device"),
    ("import torch\nd = 'cuda:%(rank)d' % p", "cuda-device"),
    ("import tensorflow as tf\nd = '/gpu:{0:d}'.format(i)", "tf-device"),
    ("import torch\nx = torch.load(p, map_location='cuda')", "cuda-device"),
    ("import torch as th\nth.cuda.manual_seed(1)", "cuda-seed"),
    ("import torch\nt = torch.cuda.FloatTensor(3)", "cuda-tensor-type"),
    ("import torch\ng = torch.cuda.CUDAGraph()", "cuda-graph"),
    ("import torch\ntorch.cuda.nvtx.range_push('a')", "cuda-profile"),
    ("import torch\ntorch.distributed.init_process_group('nccl')", "nccl"),
    ("import torch.distributed as dist\ndist.send(x, 1)", "torch-p2p"),
    ("import torch\nm = torch.nn.DataParallel(m)", "torch-data-parallel"),
    ("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'", "gpu-environment"),
    ("from torch.utils import cpp_extension as c\nc.load_inline('a', s)", "cuda-extension"),
    ("import triton\n@triton.jit\ndef k(x): pass", "triton-kernel"),
    ("import cupy as cp\na = cp.zeros(3)", "python-cuda"),
    ("from numba import cuda\n@cuda.jit\ndef k(x): pass", "python-cuda"),
    ("import torch\nclass F(torch.autograd.Function):\n  pass", "autograd-function"),
    ("from torch import nn\nclass M(nn.Module):\n  pass", "torch-module"),
    ("import torch\ny = torch.where(x)", "where-one-argument"),
    ("import torch\ni = mask.nonzero()", "nonzero"),
    ("import torch\nx = torch.randn(3)\ny = x[x > 0]", "boolean-index"),
    ("import torch\nx = torch.randn(3)\nassert (x >= 0).all()", "tensor-branch"),
    ("import torch\ndone = torch.zeros(3)\nwhile not done.any():\n  pass", "data-loop"),
    ("import torch\nz = torch.zeros(n.item())", "data-shape"),
    ("import torch\nx = y.double()", "fp64"),
    ("import torch\nd = torch.get_autocast_gpu_dtype()", "torch-amp"),
    ("import torch\nscaler = torch.GradScaler(device)", "torch-amp"),
    ("from torch.nn.modules.rnn import LSTM\nlayer = LSTM(8, 8)", "recurrent"),
    ("from torch.nn.modules.conv import Conv3d\nlayer = Conv3d(8, 8, 3)", "conv3d"),
    ("import tensorflow as tf\nn = int(tf.math.count_nonzero(x == 2))", "host-float"),
    ("import tensorflow as tf\nif tf.size(a) < tf.size(b):\n  pass", "tensor-branch"),
    ("import torch\na, b = (one.to(d) for one in batch)\nn += b.sum().item()", "host-item"),
    ("import torch\ndef forward(self, x):\n  if x.sum() > 0:\n    return x", "tensor-branch"),
    ("import torch\nx = torch.fft.rfft(y)", "fft"),
    ("import torch\nw = torch.linalg.eig(a)", "eig"),
    ("import torch\nx.mul_(2)", "in-place"),
    ("import torch\nm.register_forward_hook(f)", "torch-hook"),
    ("import tensorflow as tf\ny = tf.py_function(f, [x], tf.float32)", "tf-py-function"),
    ("import tensorflow.compat.v1 as tf\ns = tf.Session()", "tf-session"),
    ("import tensorflow as tf\nx = tf.placeholder(tf.float32)", "tf1-api"),
    ("import tensorflow as tf\ne = tf.estimator.Estimator(f)", "tf-estimator"),
    ("import tensorflow as tf\ns = tf.distribute.TPUStrategy(r)", "tf-tpu-strategy"),
    ("import tensorflow as tf\nwith tf.device('/gpu:0'):\n  pass", "tf-device"),
    ("import tensorflow as tf\nd = tf.data.Dataset.range(9)\nd = d.map(f)", "tf-data-map"),
    ("import tensorflow as tf\nf = tf.function(g, jit_compile=True)", "tf-xla-compile"),
    ("from keras.layers.core import Dense\nmodel = 1", "keras2-api"),
    ("from keras import backend as K\ny = K.mean(x)", "keras-backend"),
    ("import mxnet as mx\nc = mx.gpu(0)", "mx-context"),
    ("from mxnet import autograd\nwith autograd.record():\n  pass", "mx-autograd"),
    ("from mxnet import gluon\nt = gluon.Trainer(p, 'sgd')", "mx-trainer"),
    ("import mxnet as mx\nnet.hybridize()", "mx-hybridize"),
    ("import torch_xla.core.xla_model as xm\nd = xm.xla_device()", "xla-device"),
    ("import torch_xla.core.xla_model as xm\nxm.mark_step()", "xla-step"),
    ("import jax\nf = jax.pmap(g)", "jax-pmap"),
    ("import jax\njax.config.update('jax_enable_x64', True)", "jax-x64"),
    ("import jax\ny = jax.pure_callback(f, s, x)", "jax-callback"),
    ("import jax\njax.debug.print('x')", "jax-debug"),
    ("import jax\n@jax.jit\ndef f(x):\n  for i in range(1000):\n    x = x + 1\n  return x", "jax-unrolled-loop"),
])
def test_a_construct_is_found(text: str, rule: str) -> None:
    assert rule in {name for name, line in rules(text) if line > 1 or rule == "keras2-api"}


@pytest.mark.parametrize("text", [
    '"""Call model.cuda() on device "cuda"."""\nimport torch',
    "import torch\n# x = x.cuda()",
    "import torch\ndef f():\n    '''\n    torch.cuda.synchronize()\n    '''",
    "import numpy as np\nx = np.zeros(3)\ny = x[x > 0]\nz = x.mean().item()\nassert (x >= 0).all()",
    "import torch\nimport numpy as np\nx = np.zeros(3)\ny = x[x > 0]\nz = x.tolist()",
    "import torch\nif False:\n    x.cuda()",
    "import torch\ny = torch.where(a, b, c)",
    "import torch\nif x.shape[0] > 3 and x is not None:\n    pass",
    "import torch\nn = torch.linalg.norm(x)",
    "d = {'cuda': '12.4'}",
    "import torch\nprint('loss of', len(names))",
    "import numpy as np\nimport torch\nmean_loss = 0.0\nmean_loss += 1.5\nmean_loss /= i + 1\nprint(mean_loss)",
    "import tensorflow as tf\ndef f(step, loss):\n    return int(step), float(loss)",
    "import tensorflow as tf\nif tf.executing_eagerly():\n    pass",
    "import torch\ndef forward(self, x, **more):\n    wanted = more.pop('wanted', False)\n    assert not wanted",
    "import torch\ndef forward(self, x, cache):\n    held = cache.get_length(0)\n    if held + x.shape[1] > 8:\n        pass",
])
def test_what_only_looks_like_it_is_left_alone(text: str) -> None:
    assert rules(text) == set()


def test_a_number_that_a_kernel_reads_is_told_where_it_is_read_alone() -> None:
    text = "from numba import cuda\n@cuda.jit\ndef k(x):\n  t = cuda.blockIdx.x\n  if t > 0:\n    x[t] = 1"
    assert {line for rule, line in rules(text) if rule == "python-cuda"} == {1, 2, 4}


def test_a_line_in_the_middle_of_a_chain_is_the_one_that_is_told() -> None:
    assert ("cuda-call", 4) in rules("import torch\nx = (\n    torch.zeros(3)\n    .cuda()\n)")


def test_a_test_for_the_device_guards_what_is_behind_it() -> None:
    text = "import torch\nif torch.cuda.is_available():\n    m.cuda()\n"
    assert found(text, "cuda-call").guarded
    assert not found("import torch\nm.cuda()\n", "cuda-call").guarded


def test_a_read_in_the_training_loop_is_told_from_others() -> None:
    text = ("import torch\nfor x in loader:\n    loss = f(x)\n    loss.backward()\n    a = loss.item()\n    if i % 100 == 0:\n"
            "        b = loss.item()\nfor x in test:\n    c = f(x).item()\nd = total.item()\n")
    reads = {one.line: one for one in scan(text).findings if one.rule == "host-item"}
    assert [(line, one.where, one.periodic) for line, one in sorted(reads.items())] == [
        (5, STEP, False), (7, STEP, True), (9, LOOP, False), (10, ONCE, False)]


@pytest.mark.parametrize(("arguments", "expected"), [
    ("d, batch_size=8", {"torch-loader", "loader-workers", "loader-pin-memory", "loader-ragged-batch"}),
    ("d, batch_size=8, num_workers=n, pin_memory=True, drop_last=True", {"torch-loader"}),
    ("d, batch_sampler=s, num_workers=4, pin_memory=True", {"torch-loader"}),
    ("d, **options", {"torch-loader"}),
])
def test_a_loader_is_judged_by_the_arguments_it_has(arguments: str, expected: set[str]) -> None:
    assert {name for name, line in rules(f"from torch.utils.data import DataLoader\nl = DataLoader({arguments})")} == expected


def test_a_library_that_the_code_base_holds_itself_is_none() -> None:
    files = [SourceFile("megatron/core/a.py", "from megatron.core import b"), SourceFile("x.py", "import deepspeed")]
    assert {one.rule for one in scan_tree(files).findings} == {"library-deepspeed"}


def test_a_package_within_a_name_that_several_share_is_its_own() -> None:
    uses = SourceFile("optimum/tpu/a.py", "import optimum.tpu.log as log\nlog.info(1)")
    files = [SourceFile("optimum/tpu/__init__.py", ""), uses]
    assert [one.rule for one in scan_tree(files).findings] == []
    assert [one.rule for one in scan_tree(files[1:]).findings][:1] == ["library-jetstream"]


def test_a_library_set_to_none_when_it_is_missing_is_still_known() -> None:
    text = "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\nr = hvd.rank()"
    assert ("library-horovod", 5) in rules(text)


def test_a_notebook_tells_cell_and_line_and_reads_pip_lines() -> None:
    cells = [{"cell_type": "markdown", "source": "x.cuda()"},
             {"cell_type": "code",
              "source": ["!pip install torch==1.13.1+cu117\n", "%matplotlib inline\n", "import torch\n", "x.cuda()"]},
             {"cell_type": "code", "source": "y = x.item()"}]
    result = scan(json.dumps({"cells": cells}), "a.ipynb")
    assert {(one.rule, one.cell, one.line) for one in result.findings} == {
        ("pin-old-torch", 2, 1), ("pin-cuda-build", 2, 1), ("cuda-call", 2, 4), ("host-item", 3, 1)}
    assert [(one.name, one.pinned) for one in result.requirements] == [("torch", "1.13.1+cu117")]


def test_python_2_is_repaired_and_said_to_be() -> None:
    text = "import torch\nprint 'loss', loss\ntry:\n    x = 10L\nexcept IOError, e:\n    raise ValueError, 'no'\nx.cuda()\n"
    result = scan(text)
    assert result.read == (("python 2, repaired", 1),)
    assert [(one.rule, one.line) for one in result.findings if one.rule == "cuda-call"] == [("cuda-call", 7)]


def test_a_broken_file_is_read_in_parts_and_said_to_be() -> None:
    result = scan("import torch\ndef f(:\n    x.cuda()\n\n@decorate\ndef g(y):\n    return y.item()\n")
    assert result.read == (("python, in parts", 1),)
    assert {("cuda-call", 3), ("host-item", 7)} <= {(one.rule, one.line) for one in result.findings}
    assert "read in parts" in result.notes[0]


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("requirements.txt", "tensorflow-gpu==1.15\n# mxnet\n", {("pin-old-tensorflow", 1), ("pin-tensorflow-gpu", 1)}),
    ("requirements.txt", "torch==2.9.0\ntorch_xla==2.8.0", {("pin-torch-not-tpu", 1), ("pin-torch-xla", 2), ("pin-conflict", 2)}),
    ("requirements.txt", "jax[cuda11_cudnn86]>=0.4.2", {("pin-jax-cuda11", 1)}),
    ("requirements.txt", "torch>=2.0\nnumpy", set()),
    ("requirements/base.txt", "mxnet-cu112==1.9.1\nnumpy>=1.26", {("pin-mxnet", 1), ("pin-conflict", 2)}),
    ("pyproject.toml", '[project]\nrequires-python = "<3.9"\ndependencies = [\n  "flash-attn>=2",\n]', {("pin-python", 2),
                                                                                              ("library-flash-attn", 4)}),
    ("setup.cfg", "[options]\ninstall_requires =\n  xformers\n", {("library-xformers", 3)}),
    ("setup.py", "from setuptools import setup\nsetup(install_requires=['bitsandbytes'])", {("library-bitsandbytes", 2)}),
    ("environment.yml", "dependencies:\n  - python=3.8\n  - cudatoolkit=11.3\n  - pip:\n    - apex\n",
     {("pin-python", 2), ("pin-cuda-build", 3), ("library-apex", 5)}),
    ("Dockerfile", "FROM nvcr.io/nvidia/pytorch:24.01-py3\nRUN pip install flash-attn \\\n    deepspeed\n",
     {("cuda-image", 1), ("library-flash-attn", 2), ("library-deepspeed", 2)}),
    ("run.sh", "# torchrun x\nexport NCCL_DEBUG=INFO\ntorchrun --nproc_per_node=8 train.py\nnvidia-smi\n",
     {("gpu-environment", 2), ("launcher", 3), ("nvidia-tool", 4)}),
    ("k.cu", "// __global__\n__global__ void k() {}\nint f() { k<<<1, 2>>>(); }\n", {("cuda-source", 2), ("cuda-source", 3)}),
    ("b.cpp", "#include <torch/extension.h>\nPYBIND11_MODULE(a, m) {}\n", {("native-op", 2)}),
    ("k.hip", "#include <hip/hip_runtime.h>\n", {("hip-source", 1)}),
    ("conf/a.yaml", "backend: 'nccl'\ndevice: cuda\nname: my cuda run\n", {("nccl", 1), ("cuda-device", 2)}),
])
def test_other_files_are_read_as_what_they_are(name: str, text: str, expected: set[tuple[str, int]]) -> None:
    assert rules(text, name) == expected


_STEP = "import torch\ndef step(x, y):\n    loss = f(x, y)\n"


@pytest.mark.parametrize(("text", "line"), [
    (_STEP + "    if loss > 3:\n        return\n    loss.backward()", 4),
    (_STEP + "    if not loss < 1e4 or y is None:\n        pass\n    accelerator.backward(loss)", 4),
    (_STEP + "    loss = loss / 4\n    assert loss >= 0\n    scaler.scale(loss).backward()", 5),
    (_STEP + "    (loss / 4).backward()\n    if loss == 0:\n        pass", 5),
    (_STEP + "    model_engine.backward(loss)\n    while loss > 1:\n        pass", 5),
    ("import torch\ndef step(loss):\n    if loss != loss:\n        return\n    loss.backward()", 3),
    ("import torch\ndef step(x):\n  loss = 0\n  for one in x:\n    loss += f(one)\n  if loss > 3: pass\n  loss.backward()", 6),
    ("import torch\ndef valid(x, y):\n    loss = criterion(m(x), y)\n    if loss < 2:\n        pass", 4),
    ("import torch\ndef valid(x, y):\n    loss = self.loss_fn(m(x), y)\n    if loss < 2:\n        pass", 4),
    ("import torch\nclass M:\n  def training_step(s, x):\n    loss = f(x)\n    if loss > 3: pass\n    return {'loss': loss}", 5),
    ("import torch\nclass M:\n  def go(self):\n    self.loss = f()\n    if self.loss > 3: pass\n    self.loss.backward()", 5),
    ("import jax\ngrads_of = jax.value_and_grad(f)\nloss, grads = grads_of(p, x)\nif loss > 3:\n    pass", 4),
    ("import torch\ng = torch.autograd.grad(penalty, x)\npenalty = f(x)\nif penalty > 1:\n    pass", 4),
])
def test_a_branch_on_what_is_differentiated_reads_a_tensor(text: str, line: int) -> None:
    told = {name: at for name, at in rules(text) if name in ("tensor-branch", "data-loop")}
    assert [*told.values()] == [line]


@pytest.mark.parametrize("text", [
    _STEP + "    loss.backward()\n    loss = loss.item()\n    if loss > 3:\n        pass",
    _STEP + "    if loss is not None:\n        loss.backward()",
    _STEP + "    loss.backward()\n    if loss.shape[0] > 3:\n        pass",
    "import torch\nval_loss = evaluate(m)\nif val_loss < best_loss:\n    pass",
    "import torch\ndef step(x):\n    loss = None\n    if loss:\n        loss.backward()",
    "import torch\ndef log(loss):\n    if loss > 3:\n        pass\ndef step(loss):\n    loss.backward()",
    "import torch\ntask.backward(3)\ngrade = g(x)\nif grade > 3:\n    pass",
    "import sklearn\nloss = criterion(x)\nif loss > 3:\n    pass",
])
def test_a_branch_on_a_plain_number_is_left_alone(text: str) -> None:
    assert not {name for name, _ in rules(text)} & {"tensor-branch", "data-loop"}
