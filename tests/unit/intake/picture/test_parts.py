"""What repeats in a graph: by the numbers in module paths, or by the sequence of operations where there are none."""

from core.graph import Graph
from intake.picture.parts import parts_of
from tests.unit.intake.picture.sketch import Sketch, layers


def told(graph: Graph) -> list[tuple[str, int, int]]:
    """Name, repeats, and operations of one repeat."""
    return [(part.name, len(part.members), len(part.members[0][1])) for part in parts_of(graph)]


def scoped(*scopes: str, width: int = 8) -> Graph:
    """A product in each of some modules, one after the other."""
    sketch = Sketch()
    x = sketch.given(4, width)
    for scope in scopes:
        sketch.scope = scope
        x = sketch.product(x, sketch.weight(width, width))
    return sketch.graph(x)


def test_equal_layers_with_paths_are_one_part():
    assert told(layers(6).graph()) == [("embed", 1, 1), ("layers.*", 6, 4), ("head", 1, 1)]


def test_equal_layers_without_paths_are_found_too():
    assert told(layers(6, named=False).graph()) == [("before", 1, 1), ("layers.*", 6, 4), ("after", 1, 1)]


def test_every_forward_operation_is_in_one_part():
    for graph in (layers(5).graph(), layers(5, named=False).graph(), scoped("a.0.b.0", "a.0.b.1", "a.1", "c", "")):
        inside = [at for part in parts_of(graph) for _, nodes in part.members for at in nodes]
        assert sorted(inside) == list(range(len(graph.nodes)))


def test_layers_of_two_kinds_are_told_apart():
    sketch = Sketch()
    x = sketch.given(4, 8)
    for number in range(6):
        sketch.scope = f"model.layers.{number}.mlp"
        x = sketch.product(x, sketch.weight(8, 8))
        if number % 3 == 2:
            x = sketch.each("aten.gelu", x)
    assert told(sketch.graph(x)) == [("model.layers.* (1 of 2 kinds)", 4, 1), ("model.layers.* (2 of 2 kinds)", 2, 2)]


def test_lists_within_a_list_of_unlike_stages_are_told_one_by_one():
    sketch = Sketch()
    x, width = sketch.given(4, 8), 8
    for stage, (blocks, wider) in enumerate([(2, 16), (3, 32)]):
        sketch.scope = f"stages.{stage}.down"
        x, width = sketch.product(x, sketch.weight(width, wider)), wider
        for block in range(blocks):
            sketch.scope = f"stages.{stage}.blocks.{block}"
            x = sketch.product(x, sketch.weight(width, width))
    assert told(sketch.graph(x)) == [
        ("stages.0.down", 1, 1), ("stages.0.blocks.*", 2, 1), ("stages.1.down", 1, 1), ("stages.1.blocks.*", 3, 1),
    ]  # fmt: skip


def test_numbers_within_a_name_are_no_list():
    assert told(scoped("conv1", "conv2", "layer_10", "v2.block")) == [
        ("conv1", 1, 1), ("conv2", 1, 1), ("layer_10", 1, 1), ("v2.block", 1, 1),
    ]  # fmt: skip


def test_an_operation_that_occurs_several_times_in_each_layer_does_not_hide_the_layers():
    sketch = Sketch()
    x = sketch.given(4, 8)
    for _ in range(6):
        for _ in range(3):
            x = sketch.product(x, sketch.weight(8, 8))
        for _ in range(2):
            x = sketch.each("aten.relu", x)
    assert told(sketch.graph(x)) == [("layers.*", 6, 5)]


def test_layers_without_paths_keep_the_views_between_their_operations():
    sketch = Sketch()
    x = sketch.given(4, 8)
    for _ in range(4):
        x = sketch.each("aten.relu", sketch.view(sketch.product(sketch.view(x, 4, 8), sketch.weight(8, 8)), 8, 4))
        x = sketch.view(x, 4, 8)
    assert [(name, repeats) for name, repeats, _ in told(sketch.graph(x))] == [("before", 1), ("layers.*", 4), ("after", 1)]


def test_a_graph_in_which_nothing_repeats_is_one_part():
    sketch = Sketch()
    x = sketch.each("aten.relu", sketch.product(sketch.given(4, 8), sketch.weight(8, 16)))
    assert told(sketch.graph(sketch.product(x, sketch.weight(16, 3)))) == [("model", 1, 3)]


def test_a_graph_of_views_alone_or_of_nothing_is_no_fault():
    sketch = Sketch()
    assert parts_of(sketch.graph()) == []
    assert told(sketch.graph(sketch.view(sketch.given(4, 8), 32))) == [("model", 1, 1)]


def test_paths_as_deep_as_they_may_be_take_no_longer_than_they_are_long():
    deep = ".".join(["a.0"] * 60)
    graph = scoped(*(f"{deep}.b.{number}" for number in range(3)))  # doubling with each level would never end
    assert told(graph) == [(f"{deep}.b.*", 3, 1)]
