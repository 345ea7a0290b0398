"""Files of weights alone: safetensors and GGUF headers and HDF5 shapes, and what is refused of them."""

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BadInput
from core.graph import Parameters
from core.graph_json import graph_from_json
from intake.readers import gguf, hdf5, safetensors
from intake.readers.hdf5_bytes import Hdf5
from intake.readers.hdf5_groups import contents_of
from intake.source import BytesSource, PathSource

MODELS = Path(__file__).resolve().parents[3] / "samples" / "models"
READERS = {".safetensors": safetensors, ".gguf": gguf, ".h5": hdf5}
SAMPLES = [MODELS / "safetensors" / "llama.safetensors", MODELS / "gguf" / "llama.gguf",
           *(MODELS / "hdf5" / f"{name}.h5" for name in ("earliest", "latest", "shared"))]  # fmt: skip


def _parameters(plain: dict[str, object]) -> Parameters:
    found = graph_from_json(plain)
    assert isinstance(found, Parameters)
    return found


def _safetensors(header: object, data: bytes = b"") -> BytesSource:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return BytesSource("x.safetensors", pack("<Q", len(text)) + text + data)


def _entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_safetensors_give_names_shapes_and_dtypes() -> None:
    held = _parameters(safetensors.read(PathSource(SAMPLES[0]), {}))
    shapes = {tensor.name: (tensor.shape, tensor.dtype) for tensor in held.tensors}
    assert len(shapes) == 21
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == ((8, 16), "fp16")
    assert held.metadata == (("format", "pt"),)


def test_a_folder_of_shards_is_one_model_and_the_config_beside_it_wins() -> None:
    whole = _parameters(safetensors.read(PathSource(SAMPLES[0]), {}))
    held = _parameters(safetensors.read(PathSource(MODELS / "safetensors" / "sharded"), {}))
    assert {(one.name, one.shape) for one in held.tensors} == {(one.name, one.shape) for one in whole.tensors}
    assert held.guess == {"model_type": "llama", "num_attention_heads": 2}


def test_a_shard_that_the_index_names_must_be_there() -> None:
    index = json.dumps({"weight_map": {"a": "gone.safetensors"}}).encode()
    with pytest.raises(BadInput, match=r"gone\.safetensors"):
        safetensors.read(BytesSource("folder", {"model.safetensors.index.json": index, "other.safetensors": b""}), {})


@pytest.mark.parametrize(("dtype", "size", "named"), [
    ("F8_E4M3", 8, "fp8"), ("U4", 4, "uint4"), ("I4", 4, "int4"), ("F4", 4, "fp4"), ("BF16", 16, "bf16"), ("BOOL", 8, "bool"),
    ("C64", 64, "complex64"),
])  # fmt: skip
def test_each_dtype_of_the_format_is_known_with_its_bits(dtype: str, size: int, named: str) -> None:
    source = _safetensors({"a": _entry(dtype, [4, 6], 0, 24 * size // 8)}, bytes(24 * size // 8))
    assert _parameters(safetensors.read(source, {})).tensors[0].dtype == named


@pytest.mark.parametrize(("source", "message"), [
    (BytesSource("x.safetensors", pack("<Q", 2**63) + b"{}"), "header claims 9223372036854775808"),
    (BytesSource("x.safetensors", b"abc"), "header claims"),
    (_safetensors({"a": _entry("F32", [2], 0, 8), "b": _entry("F32", [2], 12, 20)}, bytes(20)), "a gap at byte 8"),
    (_safetensors({"a": _entry("F32", [2], 0, 8), "b": _entry("F32", [2], 4, 12)}, bytes(12)), "an overlap at byte 4"),
    (_safetensors({"a": _entry("F32", [2], 0, 8)}, bytes(9)), "9 bytes of data"),
    (_safetensors({"a": _entry("F32", [2], 0, 8)}, bytes(7)), "7 bytes of data"),
    (_safetensors({"a": _entry("X99", [2], 0, 8)}, bytes(8)), "dtype 'X99'"),
    (_safetensors({"a": _entry("F32", [3], 0, 8)}, bytes(8)), "in 8 bytes"),
    (_safetensors({"a": _entry("F32", [2**40, 2**40], 0, 8)}, bytes(8)), "in 8 bytes"),
    (_safetensors({"a": _entry("F32", [-2], 0, 8)}, bytes(8)), "not negative"),
    (_safetensors(b'{"a": {}, "a": {}}'), "a key stands twice"),
    (_safetensors(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"), "no JSON|nested deeper"),
    (_safetensors({}), "without tensors"),
    (BytesSource("model.safetensors.index.json", b"{}"), "an index without its shards"),
], ids=["2^63", "short", "gap", "overlap", "more", "less", "dtype", "size", "overflow", "negative", "twice", "deep", "empty",
"index"])  # fmt: skip
def test_safetensors_that_break_the_formats_rules_are_refused(source: BytesSource, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        safetensors.read(source, {})


def test_a_header_alone_is_read_and_says_so() -> None:
    held = _parameters(safetensors.read(_safetensors({"a": _entry("F32", [2**20, 2**20], 0, 2**42)}), {}))
    assert held.notes[0] == "a header alone: the data is not in the file"


def test_gguf_gives_shapes_outermost_first_and_the_bits_of_each_type() -> None:
    held = _parameters(gguf.read(PathSource(SAMPLES[1]), {}))
    tensors = {tensor.name: (tensor.shape, tensor.dtype) for tensor in held.tensors}
    assert tensors["token_embd.weight"] == ((8, 256), "fp16")
    assert tensors["blk.0.attn_q.weight"] == ((16, 256), "int8")
    assert tensors["blk.1.attn_q.weight"] == ((16, 256), "int4")
    metadata = dict(held.metadata)
    # 2048 x 2, 256 x 4, 4096 elements in blocks of 34 bytes and in blocks of 18
    assert metadata["stored bytes"] == str(4096 + 1024 + 4096 // 32 * 34 + 4096 // 32 * 18)
    assert "Q4_0 1 (4.5 bits)" in metadata["tensor types"]


def test_ggufs_own_keys_make_the_config() -> None:
    guess = _parameters(gguf.read(PathSource(SAMPLES[1]), {})).guess
    assert guess is not None
    wanted = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512,
        "num_attention_heads": 8,
              "num_key_value_heads": 2, "vocab_size": 8, "tie_word_embeddings": True}  # fmt: skip
    assert {key: guess[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("kind", "bits"), [("Q4_K", 4.5), ("Q6_K", 6.5625), ("Q8_0", 8.5), ("Q2_K", 2.625), ("MXFP4", 4.25), ("BF16", 16.0)]
)
def test_bits_of_a_block_include_its_scales(kind: str, bits: float) -> None:
    assert gguf.bits_of(kind) == bits


def _gguf(body: bytes, version: int = 3, order: str = "<") -> BytesSource:
    return BytesSource("x.gguf", b"GGUF" + pack(f"{order}I", version) + body)


@pytest.mark.parametrize(("source", "message"), [
    (BytesSource("x.gguf", b"GGML" + bytes(20)), "begin with GGUF"),
    (_gguf(bytes(16), 1), "version 1"),
    (_gguf(pack("<QQ", 2**40, 0)), "1099511627776 tensors"),
    (_gguf(pack("<QQ", 0, 2**40)), "1099511627776 keys"),
    (_gguf(pack("<QQ", 0, 1) + pack("<Q", 2**50) + bytes(40)), "a text of 1125899906842624"),
    (_gguf(pack("<QQ", 0, 1) + pack("<Q1sI", 1, b"a", 9) + pack("<IQ", 4, 2**60) + bytes(40)), "1152921504606846976 items"),
    (_gguf(pack("<QQ", 0, 1) + pack("<Q1sI", 1, b"a", 99) + bytes(40)), "type 99"),
    (_gguf(pack("<QQ", 1, 0) + pack("<Q1sIQIQ", 1, b"w", 1, 64, 77, 0) + bytes(64)), "type 77"),
    (_gguf(pack("<QQ", 1, 0) + pack("<Q1sIQIQ", 1, b"w", 1, 33, 2, 0) + bytes(64)), "a multiple of 32"),
    (_gguf(pack("<QQ", 1, 0) + pack("<Q1sIQIQ", 1, b"w", 1, 2**40, 0, 0) + bytes(640)), "tensors claim"),
    (_gguf(pack("<QQ", 0, 0)), "without tensors"),
], ids=["magic", "version", "tensors", "keys", "text", "array", "value", "type", "block", "data", "empty"])  # fmt: skip
def test_gguf_that_claims_what_is_not_there_is_refused(source: BytesSource, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        gguf.read(source, {})


def test_a_big_endian_gguf_is_read() -> None:
    body = pack(">QQ", 1, 0) + pack(">Q1sIQQIQ", 1, b"w", 2, 4, 3, 0, 0)
    held = _parameters(gguf.read(_gguf(body + bytes(-(len(body) + 8) % 32) + bytes(48), 3, ">"), {}))
    assert [(one.name, one.shape, one.dtype) for one in held.tensors] == [("w", (3, 4), "fp32")]


@pytest.mark.parametrize("name", ["earliest", "latest"])
def test_hdf5_datasets_have_their_shapes_and_dtypes_in_old_and_new_layouts(name: str) -> None:
    held = _parameters(hdf5.read(PathSource(MODELS / "hdf5" / f"{name}.h5"), {}))
    dtypes = ("fp16", "fp32", "fp64", "int32", "uint8", "bool")
    wanted = {f"part_{at % 3}/weight_{at}": ((at + 1, 2), dtypes[at % 6]) for at in range(24)}
    assert {one.name: (one.shape, one.dtype) for one in held.tensors} == wanted


@pytest.mark.parametrize("name", ["earliest", "latest"])
def test_texts_of_hdf5_attributes_are_found_among_many(name: str) -> None:
    path = MODELS / "hdf5" / f"{name}.h5"
    with path.open("rb") as stream:
        contents = contents_of(Hdf5(stream, path.stat().st_size), frozenset({"note_7", "note_23"}))
    assert contents.texts == {"note_7": "x" * 7, "note_23": "x" * 23}


@pytest.mark.parametrize("link", ["soft", "away"])
def test_links_that_lead_elsewhere_are_told_and_not_followed(link: str) -> None:
    held = _parameters(hdf5.read(PathSource(MODELS / "hdf5" / "latest.h5"), {}))
    assert f"the link {link} leads elsewhere: it is not followed" in held.notes


def test_a_dataset_that_claims_petabytes_is_refused() -> None:
    data = (MODELS / "hdf5" / "earliest.h5").read_bytes()
    # the dataspace of weight_23 is 24 x 2: version 1, rank 2, then its extents; its greatest extents follow
    extents = pack("<QQ", 24, 2)
    assert data.count(extents) >= 1
    with pytest.raises(BadInput, match="claims"):
        hdf5.read(BytesSource("x.h5", data.replace(extents, pack("<QQ", 2**50, 2))), {})


@pytest.mark.parametrize("data", [b"", b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + bytes(200),
    b"\x89HDF\r\n\x1a\n\x02\x08\x08" + bytes(60)],
                         ids=["empty", "signature", "zeros", "no root"])  # fmt: skip
def test_a_file_that_only_begins_like_hdf5_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match="HDF5"):
        hdf5.read(BytesSource("x.h5", data), {})


@pytest.mark.parametrize(("reader", "name", "fits"), [
    (safetensors, "a.safetensors", True), (safetensors, "a.bin", False), (gguf, "x.GGUF", True), (hdf5, "a.weights.h5", True),
    (hdf5, "a.npz", False),
])  # fmt: skip
def test_a_reader_knows_its_files_by_their_names(reader: object, name: str, fits: bool) -> None:
    knows: Callable[[str, bytes], bool] = reader.fits  # type: ignore[attr-defined]
    assert knows(name, b"") is fits


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
@settings(max_examples=120, deadline=None, database=None)
@given(changes=st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), min_size=1, max_size=12), cut=st.integers(0, 2**18))
def test_a_changed_file_is_read_or_refused(path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(path.read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    if cut % 4 == 0:
        del data[cut % len(data) :]
    try:
        graph_from_json(READERS[path.suffix].read(BytesSource(path.name, bytes(data)), {}))
    except BadInput as refused:
        if "\n" in str(refused):
            pytest.fail("more than one line")
