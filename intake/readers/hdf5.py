"""Reads HDF5: shapes and dtypes of datasets, and the `model_config` that a legacy Keras `.h5` keeps; never the data.

The bytes are read by our own bounded code (`hdf5_bytes`, `hdf5_groups`), since the common library has had faults that a crafted
file reaches.
"""

from collections.abc import Mapping

from core.errors import BadInput
from core.graph import Parameters, Tensor
from core.graph_json import graph_to_json
from intake.readers.guess import guessed
from intake.readers.hdf5_bytes import SIGNATURE, Hdf5
from intake.readers.hdf5_groups import Contents, Dataset, contents_of
from intake.readers.keras_config import read_model
from intake.readers.keras_match import matched
from intake.readers.plain_json import read_json
from intake.source import Source

TITLE = "HDF5"
SUFFIXES = (".h5", ".hdf5", ".weights.h5")
NEEDS: tuple[str, ...] = ()
_WANTED = frozenset({"model_config", "keras_version", "backend"})
_APART = ("optimizer_weights", "optimizer", "seed_generator", "metrics", "_metrics", "loss_tracker")
"""Groups of Keras that hold no weights of the model."""


def fits(name: str, head: bytes) -> bool:
    """Whether a file is HDF5, by its name or its first bytes."""
    return head.startswith(SIGNATURE) or name.lower().endswith((".h5", ".hdf5"))


def weights_of(contents: Contents) -> tuple[Dataset, ...]:
    """Return the datasets that are weights of a model: numbers, outside an optimizer's and a generator's own."""
    return tuple(one for one in contents.datasets
                 if one.dtype and one.dtype != "string" and not any(part in _APART for part in one.path.split("/")))  # fmt: skip


def read(source: Source, options: Mapping[str, object]) -> dict[str, object]:
    """Read a file.

    Args:
        source: one file.
        options: `batch`, `length` and `image`, where the asker knows them.

    Returns:
        The graph of the model where the file has its config; its parameters else.

    Raises:
        BadInput: no HDF5, or one that cannot be used.
    """
    if source.names():
        raise BadInput("a folder", "an HDF5 file", "hand in the file itself")
    with source.open() as stream:
        contents = contents_of(Hdf5(stream, source.size), _WANTED)
    text = contents.texts.get("model_config")
    if text is not None:
        document = read_json(text.encode(), "model_config", "save the model again with Keras")
        graph = read_model(document, "hdf5", source.name, options)
        return graph_to_json(matched(graph, weights_of(contents), contents.notes))
    found = tuple(one for one in contents.datasets if one.dtype)
    tensors = tuple(Tensor(one.path[:300], one.shape, one.dtype,
        "parameter" if one in set(weights_of(contents)) else "constant", at)
                    for at, one in enumerate(found))  # fmt: skip
    if not tensors:
        raise BadInput("HDF5 without datasets of numbers", "weights of a model", "hand in the file that holds them")
    guess = guessed(tensors, {})
    metadata = tuple(sorted(contents.texts.items()))
    return graph_to_json(
        Parameters("hdf5", source.name, tensors, metadata, guess.config, guess.reasons, (*contents.notes, *guess.notes))
    )
