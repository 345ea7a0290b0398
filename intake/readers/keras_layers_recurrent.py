"""Keras's recurrent layers and wrappers: LSTM, GRU, SimpleRNN, RNN of cells, Bidirectional, TimeDistributed and ConvLSTM."""

from intake.readers.keras_layers_base import Call, Layer, Ref, Registry, Trace, flat, one_input
from intake.readers.keras_layers_conv import add_conv, join_shape, rank_of, split_shape, spread

GATES = {"LSTM": 4, "GRU": 3, "SimpleRNN": 1}
"""Matrices of each cell."""
_STATES = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


def _cell(kind: str) -> str:
    return kind.removeprefix("CuDNN").removesuffix("Cell")


def _run(trace: Trace, layer: Layer, source: Ref, name: str, states: tuple[Ref, ...] = ()) -> tuple[Ref, list[Ref]]:
    """Add one recurrent layer over a sequence; return all its steps and its last states."""
    if len(trace.shape(source)) != 3:
        raise layer.fault("units", "an input of batch, steps and features")
    (batch, steps, inputs), units = trace.shape(source), layer.whole("units")
    gates = GATES[name]
    weights = [
        trace.weight(layer, "kernel", (inputs, gates * units)),
        trace.weight(layer, "recurrent_kernel", (units, gates * units)),
    ]
    if layer.flag("use_bias", True):
        # GRU keeps a bias for each of its two products where the reset gate comes after
        twice = name == "GRU" and layer.flag("reset_after", layer.kind.startswith("CuDNN"))
        twice = twice or layer.kind == "CuDNNLSTM"
        weights.append(
            trace.weight(layer, "bias", (2, gates * units) if twice and name == "GRU" else ((1 + twice) * gates * units,))
        )
    result = trace.value(layer, (batch, steps, units))
    dims = (steps, batch, inputs, units, gates)
    trace.node(layer, layer.kind, "rnn", dims, (source, *weights, *states), (result,), ("serial_scan",))
    last = [trace.view(layer, f"{layer.kind}.state", result, (batch, units)) for _ in range(_STATES[name])]
    return result, last


def recurrent(trace: Trace, layer: Layer, call: Call) -> object:
    """`LSTM`, `GRU` and `SimpleRNN`."""
    source = one_input(trace, layer, call, 3)
    every, states = _run(trace, layer, source, _cell(layer.kind), call.every()[1:])
    return _told(layer, every, states)


def _told(layer: Layer, every: Ref, states: list[Ref]) -> object:
    result = every if layer.flag("return_sequences") else states[0]
    return (result, *states) if layer.flag("return_state") else result


def over_cells(trace: Trace, layer: Layer, call: Call) -> object:
    """`RNN`: of one cell, or of several stacked ones that each step runs through."""
    source = one_input(trace, layer, call, 3)
    cell = layer.parts.get("cell")
    cells = list(cell.parts.values()) if cell is not None and cell.kind == "StackedRNNCells" else [cell]
    every, states, last = source, list[Ref](), source
    for one in cells:
        if one is None or _cell(one.kind) not in GATES:
            raise layer.fault("cell", "cells of Keras's own: LSTMCell, GRUCell, SimpleRNNCell, or such stacked")
        every, more = _run(trace, one, every, _cell(one.kind))
        states, last = [*states, *more], more[0]
    result = every if layer.flag("return_sequences") else last
    return (result, *states) if layer.flag("return_state") else result


def cell_alone(trace: Trace, layer: Layer, call: Call) -> object:
    """A cell that is called by itself: one step."""
    source = one_input(trace, layer, call, 2)
    shape = trace.shape(source)
    step = trace.view(layer, f"{layer.kind}.step", source, (shape[0], 1, shape[-1]))
    _, states = _run(trace, layer, step, _cell(layer.kind))
    return (states[0], states)


def both_ways(trace: Trace, layer: Layer, call: Call) -> object:
    """`Bidirectional`: a layer over the sequence, and one over it backwards."""
    source = one_input(trace, layer, call, 3)
    forward = layer.parts.get("forward_layer") or layer.parts.get("layer")
    if forward is None:
        raise layer.fault("layer", "a recurrent layer")
    backward = layer.parts.get("backward_layer")
    if backward is None:
        backward = Layer(f"backward_{forward.name}", forward.kind, forward.config, f"{layer.scope}.backward_{forward.name}",
            forward.compute,
                         forward.variable, forward.trained, None, {}, dict(forward.parts))  # fmt: skip
        if backward.parts:
            raise layer.fault("backward_layer", "its own layer, as Keras 3 writes it")
        layer.parts["backward_layer"] = backward
    ahead = flat(trace.apply(forward, Call((source,))))
    turned = trace.elementwise(layer, "Bidirectional.reverse", (source,), 0, trace.shape(source), trace.dtype(source))
    behind = flat(trace.apply(backward, Call((turned,))))
    last = behind[0]
    if forward.flag("return_sequences"):
        last = trace.elementwise(layer, "Bidirectional.reverse", (last,), 0)
    mode = layer.config.get("merge_mode", "concat")
    if mode is None:
        return (ahead[0], last, *ahead[1:], *behind[1:])
    shape = trace.shape(ahead[0])
    if mode == "concat":
        merged = trace.elementwise(
            layer, "Bidirectional.concat", (ahead[0], last), 0, (*shape[:-1], shape[-1] + trace.shape(last)[-1])
        )
    else:
        merged = trace.elementwise(layer, f"Bidirectional.{mode}"[:40], (ahead[0], last), 2 if mode == "ave" else 1)
    return (merged, *ahead[1:], *behind[1:]) if len(ahead) > 1 else merged


def each_step(trace: Trace, layer: Layer, call: Call) -> Ref:
    """`TimeDistributed`: a layer on each step; steps become batch."""
    source = one_input(trace, layer, call, 3)
    part = layer.parts.get("layer")
    if part is None:
        raise layer.fault("layer", "a layer that it wraps")
    shape = trace.shape(source)
    joined = trace.view(layer, "TimeDistributed.join", source, (shape[0] * shape[1], *shape[2:]))
    inner = flat(trace.apply(part, Call((joined,))))
    if len(inner) != 1:
        raise layer.fault("layer", "a layer with one result")
    return trace.view(layer, "TimeDistributed.split", inner[0], (shape[0], shape[1], *trace.shape(inner[0])[1:]))


def conv_lstm(trace: Trace, layer: Layer, call: Call) -> object:
    """`ConvLSTM1D` to `3D`: a convolution of the input and one of the state at each step."""
    rank = rank_of(layer.kind)
    source = one_input(trace, layer, call, rank + 3)
    shape = trace.shape(source)
    batch, spatial, channels = split_shape(layer, (shape[0], *shape[2:]))
    steps, filters, window = shape[1], layer.whole("filters"), layer.wholes("kernel_size", rank)
    if len(spatial) != rank or not isinstance(channels, int):
        raise layer.fault("filters", f"an input of {rank + 3} axes with known channels")
    found = spread(trace, layer, spatial, window, layer.wholes("strides", rank, 1))
    kernel = trace.weight(layer, "kernel", (*window, channels, 4 * filters))
    state = trace.weight(layer, "recurrent_kernel", (*window, filters, 4 * filters))
    bias = [trace.weight(layer, "bias", (4 * filters,))] if layer.flag("use_bias", True) else []
    rows, marks = batch * steps, ("serial_scan",)
    fed = add_conv(
        trace,
        layer,
        f"{layer.kind}.input",
        (source, kernel, *bias),
        spatial,
        found,
        (channels, 4 * filters),
        window,
        1,
        rows,
        marks,
    )
    # the state before each step has the size of one gate: it is written as a view of them, so that it takes no memory of its own
    before = trace.view(layer, f"{layer.kind}.before", fed, join_shape(layer, rows, found, filters))
    again = add_conv(
        trace, layer, f"{layer.kind}.state", (before, state), found, found, (filters, 4 * filters), window, 1, rows, marks
    )
    kept = trace.elementwise(layer, f"{layer.kind}.gates", (fed, again), 30, trace.shape(before), "", marks)
    one = trace.shape(kept)[1:]
    every = trace.view(layer, f"{layer.kind}.steps", kept, (batch, steps, *one))
    last: list[Ref] = [trace.view(layer, f"{layer.kind}.last", kept, (batch, *one)) for _ in range(2)]
    return _told(layer, every, last)


TABLE: Registry = {
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN", "CuDNNLSTM", "CuDNNGRU"), recurrent),
    **dict.fromkeys(("LSTMCell", "GRUCell", "SimpleRNNCell"), cell_alone),
    **dict.fromkeys(("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"), conv_lstm), "RNN": over_cells, "Bidirectional": both_ways,
    "TimeDistributed": each_step,
}  # fmt: skip
