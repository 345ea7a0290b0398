"""Traces of small torch modules: operations in order, scopes, phases, memory that dies, values that are known."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.errors import BadInput
from core.graph import Graph
from core.ops import Op
from core.symbols import BATCH, symbol, value_of
from intake.readers.torch_fit import ONE, Point, fitted
from intake.readers.torch_functions import NAMES
from intake.readers.torch_record import Trace
from intake.readers.torch_recorder import Recorder
from intake.readers.torch_trace import shortened, trace, traced

torch: Any = pytest.importorskip("torch")
nn = torch.nn


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    kept = torch.nn.functional.scaled_dot_product_attention
    yield
    assert torch.nn.functional.scaled_dot_product_attention is kept


def run(module: Any, *shapes: tuple[int, ...], training: bool = False, dtype: Any = None, known: Any = None,
        processor: bool = False) -> Trace:
    def inputs(recorder: Recorder) -> tuple[tuple[Any, ...], dict[str, Any]]:
        made = [torch.empty(shape, dtype=dtype or torch.float32, device="meta") for shape in shapes]
        if known is not None:
            recorder.know(made[0], known, given=True)
        return tuple(made), {}

    return trace(module.to("meta"), inputs, training, processor=processor)


def graph(module: Any, shape: Callable[[int], tuple[int, ...]], training: bool = False, dtype: Any = None) -> Graph:
    points = (Point(11, 1), Point(13, 1), Point(7, 1))
    traces = [run(module, shape(point.batch), training=training, dtype=dtype) for point in points]
    return fitted("small", traces, points, ONE, NAMES)


def flop(found: Graph, phase: str, **values: int) -> int:
    return sum(Op(node.kind, tuple(value_of(one, values) for one in node.dims), "fp32").flop
               for node in found.nodes if node.phase == phase and node.kind in ("matmul", "conv", "attention", "rnn"))


def test_a_linear_layer_is_a_product_forward_and_two_backward() -> None:
    found = graph(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), lambda batch: (batch, 8), training=True)
    assert found.has_backward
    assert flop(found, "forward", batch=7) == 2 * 7 * (8 * 16 + 16 * 4)
    assert flop(found, "backward", batch=7) == 2 * 7 * (8 * 16 + 2 * 16 * 4)  # none for the model's own input
    assert {node.scope for node in found.nodes if node.kind == "matmul"} == {"0", "2"}
    assert {node.scope for node in found.nodes if node.kind == "matmul" and node.phase == "backward"} == {"0", "2"}


def test_parameters_are_those_of_the_module_and_tied_ones_are_one() -> None:
    module = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10, bias=False))
    module[1].weight = module[0].weight
    found = run(module.to("meta"), (2, 3), dtype=torch.int64)
    tied = [one for one in found.tensors if one.role == "parameter"]
    assert [one.shape for one in tied if one.name] != []
    assert sum(1 for one in tied if one.name == "0.weight") == 1


def test_memory_is_free_after_the_last_operation_that_needs_it() -> None:
    class Chain(nn.Module):
        def forward(self, x: Any) -> Any:
            first = x.exp()
            second = first.sin()
            del first
            return second.cos()

    found = run(Chain(), (4, 4))
    made = {call.op: (at, call.outputs[0]) for at, call in enumerate(found.calls)}
    assert found.deaths[made["aten.exp"][1]] == made["aten.sin"][0]
    assert found.deaths[made["aten.sin"][1]] == made["aten.cos"][0]
    assert made["aten.cos"][1] not in found.deaths


def test_what_the_backward_pass_needs_lives_until_it_has_run() -> None:
    class Square(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> Any:
            return (x * self.weight).exp().sum()

    found = run(Square(), (4,), training=True)
    exp = next(call for call in found.calls if call.op == "aten.exp")
    last_forward = max(at for at, call in enumerate(found.calls) if not call.backward)
    assert found.deaths[exp.outputs[0]] > last_forward


def test_views_share_the_memory_of_what_they_look_at() -> None:
    class Views(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.transpose(0, 1)[1:].reshape(-1) + 1

    found = run(Views(), (4, 6))
    owners = {call.op: found.tensors[call.outputs[0]].storage for call in found.calls}
    given = next(at for at, one in enumerate(found.tensors) if one.role == "input")
    assert owners["aten.transpose"] == owners["aten.slice"] == given
    assert owners["aten.clone"] != given
    assert owners["aten._unsafe_view"] == owners["aten.clone"]


def test_an_operation_in_place_writes_into_its_operand() -> None:
    class InPlace(nn.Module):
        def forward(self, x: Any) -> Any:
            return (x + 1).mul_(2)

    found = run(InPlace(), (4,))
    assert found.calls[1].op == "aten.mul_"
    assert found.calls[1].outputs == found.calls[0].outputs


def test_attention_stays_one_operation_even_inside_other_functions() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)
    found = graph(layer, lambda batch: (batch, 6, 16), training=True)
    assert [node.dims for node in found.nodes if node.kind == "attention" and node.phase == "forward"] \
        == [(symbol(BATCH), 4, 4, 6, 6, 4)]
    assert flop(found, "backward", batch=2) == 2 * flop(found, "forward", batch=2) - 2 * 2 * 6 * 16 * 48


class Attends(nn.Module):
    """Attention with a mask that may be trained; queries made of parts lie otherwise than those that are seen as heads."""

    def __init__(self, masked: bool = False, joined: bool = False, heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.zeros(6, 6)) if masked else None
        self.joined, self.heads, self.dropout = joined, heads, dropout

    def forward(self, x: Any) -> Any:
        seen = x.view(*x.shape[:2], 4, 4).transpose(1, 2)
        query = torch.cat((seen[..., :2], seen[..., 2:]), -1) if self.joined else seen
        key = seen[:, : self.heads]
        made = nn.functional.scaled_dot_product_attention(query, key, key, self.mask, self.dropout)
        return made.transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize(("joined", "copies"), [(False, 0), (True, 1)])
def test_attention_gives_its_result_in_the_layout_of_the_queries(joined: bool, copies: int) -> None:
    found = run(Attends(joined=joined), (2, 6, 16))
    assert sum(call.op == "aten.clone" for call in found.calls) == copies


@pytest.mark.parametrize(("module", "fused"), [
    (Attends(), True), (Attends(masked=True), False), (Attends(heads=1), False), (Attends(dropout=0.5), False),
])  # fmt: skip
def test_on_the_processor_attention_is_one_operation_where_torch_has_a_kernel_for_it(module: Any, fused: bool) -> None:
    ops = [call.op for call in run(module, (2, 6, 16), training=module.mask is not None, processor=True).calls]
    assert ("tandem.attention" in ops, "aten.bmm" in ops) == (fused, not fused)
    assert "tandem.attention" in [call.op for call in run(module, (2, 6, 16)).calls]


def test_gradients_are_summed_where_the_first_of_them_lies() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            made = self.first(x)
            return made.exp() + self.second(made)

    found = run(Residual(), (3, 4), training=True)
    (summed,) = [call for call in found.calls if call.backward and call.op == "aten.add"]
    first = found.tensors[summed.inputs[0]]
    assert found.tensors[summed.outputs[0]].storage == first.storage
    assert found.deaths[first.storage] > found.calls.index(summed)


def test_a_gradient_of_gathered_values_is_scattered_into_zeros_in_place() -> None:
    class Gathers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.inner(x).gather(1, torch.zeros(3, 2, dtype=torch.int64))

    found = run(Gathers(), (3, 4), training=True)
    (scattered,) = [call for call in found.calls if call.op == "aten.scatter_add"]
    assert found.tensors[scattered.outputs[0]].storage == found.tensors[scattered.inputs[0]].storage


def test_a_recurrent_layer_stays_one_operation() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.LSTM(8, 16, num_layers=2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.layers(x)[0]

    found = graph(Last(), lambda batch: (batch, 5, 8))
    scans = [node for node in found.nodes if node.kind == "rnn"]
    assert [node.dims[2:] for node in scans] == [(8, 16, 4), (16, 16, 4)]
    assert flop(found, "forward", batch=3) == 2 * 5 * 3 * 4 * 16 * ((8 + 16) + (16 + 16))
    assert all(node.marks == ("serial_scan",) for node in scans)


def test_a_mask_whose_values_are_known_has_a_result_of_its_true_size() -> None:
    class Chosen(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[x > 3]

    found = run(Chosen(), (6,), dtype=torch.int64, known=torch.tensor([1, 5, 2, 7, 9, 0]))
    assert found.tensors[found.outputs[0]].shape == (3,)
    assert not found.notes


def test_a_mask_whose_values_are_unknown_has_a_result_as_large_as_it_can_be() -> None:
    class Chosen(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[x > 3]

    found = run(Chosen(), (6,))
    assert found.tensors[found.outputs[0]].shape == (6,)
    assert list(found.notes) == ["results as long as values say are taken as long as they can be"]


def test_a_value_that_comes_with_each_call_and_is_read_is_a_host_read() -> None:
    class Reads(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ones(int(x.max().item()), device=x.device)

    found = run(Reads(), (3,), dtype=torch.int64, known=torch.tensor([4, 2, 7]))
    assert found.tensors[found.outputs[0]].shape == (7,)
    assert [call.op for call in found.calls].count("aten.item") == 1


def test_a_value_that_follows_from_shapes_is_no_host_read() -> None:
    class Counts(nn.Module):
        def forward(self, x: Any) -> Any:
            places = torch.arange(x.shape[0], device=x.device)
            return x if int(places.max()) == x.shape[0] - 1 else x + 1

    assert [call.op for call in run(Counts(), (3,)).calls if call.op == "aten.item"] == []


def test_a_model_that_needs_real_values_is_refused_in_one_line() -> None:
    class Reads(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * x.sum().item()

    with pytest.raises(BadInput, match="a value of a tensor, which only real data would tell"):
        run(Reads(), (3,))


def test_the_same_shapes_give_the_same_result_when_they_are_not_asked_for_again() -> None:
    class Twice(nn.Module):
        def forward(self, x: Any) -> Any:
            first = x.t() @ x
            second = x.t() @ x
            return first + second, (x.t() + 1), (x.t() + 1)

    found = run(Twice(), (4, 6))
    shapes = [(call.op, found.tensors[call.outputs[0]].shape) for call in found.calls if call.op in ("aten.mm", "aten.add")]
    assert shapes == [("aten.mm", (6, 6)), ("aten.mm", (6, 6)), ("aten.add", (6, 6)), ("aten.add", (6, 4)), ("aten.add", (6, 4))]


def test_repeats_are_left_out_and_put_back() -> None:
    module = nn.Sequential(*(nn.Linear(4, 4) for _ in range(12)), nn.Linear(4, 2))
    with shortened(module) as worth:
        assert len(module) == 13
        assert not worth  # the last one differs, so that all before it stay
    module = nn.ModuleList(nn.Linear(4, 4) for _ in range(12))
    with shortened(module) as worth:
        assert worth
        assert len(module) == 2
    assert len(module) == 12


def test_a_trace_counts_what_flop_counter_mode_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.Flatten(), nn.LazyLinear(5))
    module(torch.zeros(2, 3, 9, 9))
    found = graph(module, lambda batch: (batch, 3, 9, 9), training=True)
    counter = FlopCounterMode(display=False)
    with counter, torch.device("meta"):
        module(torch.zeros(2, 3, 9, 9)).sum().backward()
    assert flop(found, "forward", batch=2) + flop(found, "backward", batch=2) == counter.get_total_flops()
    assert found.symbols == ((BATCH, 11),)


def test_tracing_leaves_no_hook_behind() -> None:
    recorder = Recorder({})
    before = len(torch.nn.modules.module._global_forward_hooks)
    with traced(recorder, {}, fused=True):
        assert len(torch.nn.modules.module._global_forward_hooks) == before + 1
    assert len(torch.nn.modules.module._global_forward_hooks) == before
