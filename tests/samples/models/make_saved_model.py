"""Made the SavedModel samples: `saved_model.pb` of small Keras models and of TensorFlow graphs, without their variables.

Needs TensorFlow 2.21 and Keras 3.15 on it (`KERAS_BACKEND=tensorflow`); run from the repository's root. Prints what Keras says of
each: trained and all parameters.
"""

import sys
import tempfile
from pathlib import Path

import keras
import tensorflow as tf
from keras import layers
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

PLACE = Path(__file__).resolve().parent / "saved_model"


def images():
    """Return a small convolutional network."""
    given = keras.Input((32, 32, 3))
    one = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(given)
    one = layers.ReLU()(layers.BatchNormalization()(one))
    one = layers.DepthwiseConv2D(3, padding="same")(one)
    one = layers.Conv2DTranspose(4, 2, strides=2)(one)
    one = layers.MaxPooling2D(2)(one)
    return keras.Model(given, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(one)))


def tokens():
    """Return an embedding, attention and a recurrent layer over tokens."""
    given = keras.Input((24,), dtype="int32")
    one = layers.Embedding(100, 16)(given)
    one = layers.MultiHeadAttention(2, 8)(one, one)
    one = layers.LSTM(12, return_sequences=True)(one)
    return keras.Model(given, layers.Dense(100)(one))


class Choices(tf.Module):
    """A branch and a loop that depend on values, rows where a mask holds, a Python function."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.ones((8, 8)), name="weight")

    @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float32, name="x")])
    def __call__(self, x):
        one = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.matmul(x, self.weight), lambda: x)
        one = tf.while_loop(lambda v: tf.reduce_sum(v) < 10.0, lambda v: (tf.matmul(v, self.weight),), (one,))[0]
        kept = tf.boolean_mask(one, tf.reduce_sum(one, 1) > 0)
        told = tf.py_function(lambda v: v, [kept], tf.float32)
        told.set_shape((4, 8))
        return tf.sort(told, axis=1)


def endpoint(model):
    """Return what the model is served as."""
    return lambda x: model(x, training=False)


def called(nodes):
    """Return the names of the functions that nodes call."""
    values = [value for node in nodes for value in node.attr.values()]
    return {one.name for value in values for one in (value.func, *value.list.func) if one.name}


def keep(name, write):
    """Write a model somewhere else and keep its graph: what its usual signature needs, and its variables."""
    with tempfile.TemporaryDirectory() as place:
        write(place)
        whole = saved_model_pb2.SavedModel.FromString((Path(place) / "saved_model.pb").read_bytes())
    meta = whole.meta_graphs[0]
    for other in [one for one in meta.signature_def if one != "serving_default"]:
        del meta.signature_def[other]
    answer = next(iter(meta.signature_def["serving_default"].outputs.values())).name.split(":")[0]
    graph = tf.compat.v1.graph_util.extract_sub_graph(meta.graph_def, [answer])
    bodies, needed = {one.signature.name: one for one in meta.graph_def.library.function}, called(graph.node)
    while more := {inner for one in needed for inner in called(bodies[one].node_def)} - needed:
        needed |= more
    graph.library.Clear()
    graph.library.function.extend(bodies[one] for one in sorted(needed))
    meta.graph_def.CopyFrom(graph)
    variables = [one for one in meta.object_graph_def.nodes if one.HasField("variable")]
    meta.object_graph_def.Clear()
    for one in variables:
        meta.object_graph_def.nodes.add().variable.CopyFrom(one.variable)
    (PLACE / name).mkdir(parents=True, exist_ok=True)
    (PLACE / name / "saved_model.pb").write_bytes(whole.SerializeToString(deterministic=True))


def earlier():
    """Write a graph as TensorFlow 1 had it: variables that are tensors, no functions, no signature."""
    graph = tf.Graph()
    with graph.as_default():
        given = tf.compat.v1.placeholder(tf.float32, (None, 6), name="x")
        weight = tf.raw_ops.VariableV2(shape=(6, 5), dtype=tf.float32, name="weight")
        tf.nn.relu(tf.matmul(given, weight), name="answer")
    (PLACE / "earlier.pb").write_bytes(graph.as_graph_def().SerializeToString(deterministic=True))


def main():
    """Write every sample."""
    PLACE.mkdir(exist_ok=True)
    for name, model in (("images", images()), ("tokens", tokens())):
        signature = [tf.TensorSpec((None, *one.shape[1:]), one.dtype) for one in model.inputs]
        archive = keras.export.ExportArchive(name="kept")
        archive.track(model)
        archive.add_endpoint("serve", endpoint(model), input_signature=signature)
        keep(name, lambda place, archive=archive: archive.write_out(place, verbose=False))
        trained = sum(int(tf.size(one)) for one in model.trainable_weights)
        sys.stdout.write(f"{name} {trained} {model.count_params()}\n")
    choices = Choices()
    keep("choices", lambda place: tf.saved_model.save(choices, place))
    model = images()
    whole = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec((None, 32, 32, 3), tf.float32))
    frozen = convert_variables_to_constants_v2(whole).graph.as_graph_def()
    (PLACE / "frozen.pb").write_bytes(frozen.SerializeToString(deterministic=True))
    earlier()


if __name__ == "__main__":
    main()
