"""Hostile model files of every format that is read: code and paths to follow, bombs, sizes that cannot be, graphs in circles."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.samples.hostile_models.parts import EITHER, READ, REFUSED, Case, Target, packed, replaced
from tests.samples.models.onnx_writer import field, graph, model, node, tensor, value, varint

SAMPLES = Path(__file__).resolve().parents[1] / "models"
HUGE = 2**63


class Bomb:
    """What touches the target when it is unpickled."""

    def __init__(self, target: Target) -> None:
        self._path = str(target.absent)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self._path, "w")


def sample(path: str) -> bytes:
    """Return a good file."""
    return (SAMPLES / path).read_bytes()


def _keras(*layers: dict[str, Any], **more: bytes) -> bytes:
    first = {"class_name": "InputLayer", "module": "keras.layers", "config": {"batch_shape": [None, 4], "name": "a"}}
    config = {"class_name": "Sequential", "module": "keras", "config": {"name": "s", "layers": [first, *layers]}}
    return packed({"metadata.json": b"{}", "config.json": json.dumps(config).encode()} | more)


def _layer(kind: str, home: str = "keras.layers", /, **config: Any) -> dict[str, Any]:
    return {"class_name": kind, "module": home, "config": {"name": kind.lower(), **config}, "registered_name": kind}


def keras(target: Target) -> Iterator[Case]:
    """Yield what the loaders of Keras were attacked with, as files that only name it."""
    path = str(target.canary)
    foreign = [
        ("foreign module", _layer("system", "os", command=f"touch {target.absent}"), "system"),
        ("foreign function", _layer("get_file", "keras.utils", origin=f"http://127.0.0.1:{target.port}/x"), "get_file"),
        ("lambda", _layer("Lambda", function={"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}), "Lambda"),
        ("TFSMLayer", _layer("TFSMLayer", filepath=path, call_endpoint="serve"), "TFSMLayer"),
        ("vocabulary path", _layer("StringLookup", vocabulary=path), ""),
        ("vocabulary address", _layer("TextVectorization", vocabulary=f"http://127.0.0.1:{target.port}/v"), ""),
        ("torch module", _layer("TorchModuleWrapper", "keras.utils", module="gASVAAAA"), "TorchModuleWrapper"),
    ]
    for what, layer, said in foreign:
        yield Case("F1", f"keras {what}", "m.keras", _always(_keras(layer)), said, REFUSED if said else READ)
    yield Case("F1", "keras with a path among its members", "m.keras",
               _always(replaced(sample("keras/tabular.keras"), {"../../evil": b"x", "/etc/evil": b"x"})),
               outcome=READ)  # fmt: skip


def hdf5(target: Target) -> Iterator[Case]:
    """Yield HDF5 whose contents lie elsewhere, made by HDF5 itself."""
    import h5py

    def kernel(file: Any) -> None:
        file.create_dataset("dense/kernel", shape=(4, 8), dtype="f4")

    def made(write: Callable[[Any], object]) -> bytes:
        kept = io.BytesIO()
        with h5py.File(kept, "w") as file:
            kernel(file)
            write(file)
        return kept.getvalue()

    def elsewhere(file: Any) -> None:
        file.create_dataset("dense/secret", shape=(16,), dtype="u1", external=[(str(target.canary), 0, 16)])

    def virtual(file: Any) -> None:
        layout = h5py.VirtualLayout(shape=(16,), dtype="u1")
        layout[:] = h5py.VirtualSource(str(target.canary), "x", shape=(16,))
        file.create_virtual_dataset("dense/secret", layout)

    def links(file: Any) -> None:
        file["away"] = h5py.ExternalLink(str(target.canary), "/x")
        file["soft"] = h5py.SoftLink("/soft")
        file["dense/up"] = file["/"]

    for write in (elsewhere, virtual, links):
        yield Case("F1", f"hdf5 {write.__name__}", "m.h5", _always(made(write)), "fit no architecture")
    yield Case("F1", "hdf5 in a .keras", "m.keras",
               _always(replaced(sample("keras/tabular.keras"), {"model.weights.h5": made(elsewhere)})), outcome=READ)  # fmt: skip
    yield Case("F17", "hdf5 of 8 PiB", "m.h5",
               _always(made(lambda file: file.create_dataset("x", shape=(2**50, 2), dtype="f8", chunks=(1024, 2)))))  # fmt: skip


def pickles(target: Target) -> Iterator[Case]:
    """Yield pickles in every wrapping that PyTorch and numpy have."""
    bomb = pickle.dumps(Bomb(target))
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in ("sys_info", "pickle", "storages"):
            entry = tarfile.TarInfo(name)
            entry.size = len(bomb)
            archive.addfile(entry, io.BytesIO(bomb))
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    numpy_file = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bomb
    zipped = packed({"archive/data.pkl": bomb, "archive/version": b"3"})
    plain = [
        ("m.pt", bomb),
        ("m.pth", zipped),
        ("m.bin", bomb),
        ("data.pkl", bomb),
        ("m.npy", numpy_file),
        ("m.tar", tar.getvalue()),
    ]
    for name, data in plain:
        yield Case("F2", f"pickle as {name}", name, _always(data), "neither text nor a model")
    for suffix in ("pt2", "keras", "onnx", "safetensors", "gguf", "h5", "pb", "mlirbc", "jaxpr", "tandem.json"):
        yield Case("F2", f"pickle called .{suffix}", f"m.{suffix}", _always(zipped if suffix in {"pt2", "keras"} else bomb))
    within = {f"{folder}data/{name}": bomb for folder in ("", "decoder/") for name in
              ("weights/weights.pt", "sample_inputs/model.pt", "constants/custom_obj_0", "data.pkl")}  # fmt: skip
    for name in ("older", "decoder"):
        yield Case("F2", f"pickles in {name}.pt2", "m.pt2", _always(replaced(sample(f"pt2/{name}.pt2"), within)), outcome=READ)


def configs(target: Target) -> Iterator[Case]:
    """Yield configurations that name code, or hold JSON that cannot be."""
    good = json.loads(sample("hugging_face_config/llama.json"))
    code = {"auto_map": {"AutoConfig": f"{target.canary}--evil.Config"}, "trust_remote_code": True,
            "_attn_implementation": "kernels-community/evil", "attn_implementation": f"file://{target.canary}",
            "_name_or_path": str(target.canary), "custom_pipelines": {"x": {"impl": "evil.P"}}, "use_kernels": True}  # fmt: skip
    yield Case("F3", "config with code in its keys", "config.json", _always(json.dumps(good | code).encode()), "auto_map", READ)
    inner = {"quantization_config": {"quant_method": "custom", "trust_remote_code": True, "auto_map": {"AutoModel": "evil.M"}}}
    yield Case("F3", "config with code within", "config.json", _always(json.dumps(good | inner).encode()), outcome=EITHER)
    text = json.dumps(good)
    broken = [
        ("nested 100,000 deep", text[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}", ""),
        ("a key twice", text[:-1] + ', "vocab_size": 1}', "twice"),
        ("NaN", text.replace("96", "NaN"), ""),
        ("1e999", text.replace("96", "1e999"), ""),
        ("a number of 10,000 digits", text.replace("96", "9" * 10_000), ""),
        ("2**63", text.replace("96", str(HUGE)), "1000000000"),
        ("-1", text.replace("96", "-1"), "whole number"),
        ("0", text.replace("96", "0"), "whole number"),
        ("half a pair", text.replace("llama", "\\ud800"), ""),
    ]
    for what, content, said in broken:
        drill = "F16" if what in {"2**63", "-1", "0"} else "F13"
        yield Case(drill, f"config with {what}", "config.json", _always(content.encode()), said)
    yield Case(
        "F13",
        "config with a text of 500 MB",
        "config.json",
        lambda _: text[:-1].encode() + b', "x": "' + b"a" * 500_000_000 + b'"}',
    )


def onnx(target: Target) -> Iterator[Case]:
    """Yield ONNX with data elsewhere, protobuf that cannot be, and graphs in circles."""

    def away(location: str, *more: tuple[str, str]) -> bytes:
        pairs = [("location", location), *more]
        stored = b"".join(field(1, one) for one in (4, 8)) + field(2, 1) + field(8, "w")
        stored += b"".join(field(13, field(1, key) + field(2, held)) for key, held in pairs) + field(14, 1)
        return model(graph([node("MatMul", ["x", "w"], ["y"])], [value("x", ("n", 4))], [value("y", None)], [stored]))

    canary = str(target.canary)
    for what, data in {
        "upwards": away("../" * 12 + canary.lstrip("/")),
        "absolute": away(canary),
        "negative length": away("w.bin", ("offset", "-8"), ("length", "-1")),
        "dunder key": away("w.bin", ("__class__", "x"), ("__init__", "y"), ("basepath", "/")),
        "null": away("a\0b"),
    }.items():
        yield Case("F4", f"onnx external data {what}", "m.onnx", _always(data), outcome=READ)

    def one(nodes: Sequence[bytes], size: tuple[int | str | None, ...] = ("n", 4)) -> bytes:
        return model(graph(nodes, [value("x", size)], [value("y", None)]))

    def deep(_target: Target) -> bytes:
        inner = b""
        for _ in range(10_000):
            inner = field(5, field(1, "g") + field(6, field(1, inner)))
        return field(1, 10) + field(7, field(1, inner))

    def edges(_: Target) -> bytes:
        return one([node("Sum", ["x"] * 1000, ["y" if at == 999 else f"s{at}"]) for at in range(1000)])

    relu = node("Relu", ["x"], ["y"])
    broken: list[tuple[str, str, bytes | Callable[[Target], bytes], str]] = [
        ("F15", "nested 10,000 deep", deep, ""),
        ("F15", "groups", one([relu]) + varint(7 << 3 | 3) * 20_000, ""),
        ("F15", "a length of 2 GiB", field(1, 10) + varint(7 << 3 | 2) + varint(2**31 - 1) + b"\x0a", ""),
        ("F15", "a length of 2**63", field(1, 10) + varint(7 << 3 | 2) + varint(HUGE) + b"\x0a", ""),
        ("F15", "10 million repeated fields", lambda _: one([relu]) + field(8, b"") * 10_000_000, ""),
        (
            "F18",
            "a circle",
            one([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
            "before it",
        ),
        ("F18", "a self loop", one([node("Add", ["x", "y"], ["y"])]), "before it"),
        ("F18", "a missing input", one([node("Relu", ["nobody"], ["y"])]), "before it"),
        ("F18", "a name made twice", one([relu, node("Tanh", ["x"], ["y"])]), "there already"),
        ("F18", "a million edges", edges, ""),
    ]
    for drill, what, data, said in broken:
        make = _always(data) if isinstance(data, bytes) else data
        yield Case(drill, f"onnx of {what}", "m.onnx", make, said, READ if "edges" in what else REFUSED)
    sizes: list[tuple[str, tuple[int | str | None, ...]]] = [
        ("0", (0, 4)), ("-1", (-1, 4)), ("2**63", (HUGE, 4)), ("a product over 2**62", (2**40, 2**40)),
        ("a name of its own", ("x", "x")),
        ("all open", (None, None)),
    ]  # fmt: skip
    for what, size in sizes:
        stays = "product" not in what  # a negative size is an open one
        yield Case("F16", f"onnx size {what}", "m.onnx", _always(one([relu], size)), outcome=READ if stays else REFUSED)
    yield Case(
        "F16",
        "onnx weight of -1",
        "m.onnx",
        _always(model(graph([relu], [value("x", (4,))], [value("y", None)], [tensor("w", (-1, 4))]))),
    )


def saved_models(target: Target) -> Iterator[Case]:
    """Yield TensorFlow graphs that read, write and call Python when they are run."""

    def operation(name: str, op: str, *inputs: str, **attributes: bytes) -> bytes:
        made = field(1, name) + field(2, op) + b"".join(field(3, one) for one in inputs)
        return field(1, made + b"".join(field(5, field(1, key) + field(2, held)) for key, held in attributes.items()))

    shape = field(7, field(2, field(1, 4)) + field(2, field(1, 4)))
    x = operation("x", "Placeholder", dtype=field(6, 1), shape=shape)
    path = field(8, field(1, 7) + field(2, b"") + field(8, str(target.absent)))
    name = operation("name", "Const", dtype=field(6, 7), value=path)
    four = field(1, field(7, field(2, field(1, 4)) + field(2, field(1, 4))))
    acts = {
        "ReadFile": operation("r", "ReadFile", "name", _output_shapes=four),
        "WriteFile": operation("r",
        "WriteFile", "name", "name", _output_shapes=four),
        "PyFunc": operation("r", "PyFunc", "x", token=field(2, "evil"), _output_shapes=four),
        "own op": operation("r", "EvilCustomOp", "x", _output_shapes=four),
    }  # fmt: skip
    for what, act in acts.items():
        data = x + name + act + operation("y", "Identity", "r", T=field(6, 1))
        yield Case("F5", f"saved_model with {what}", "m.pb", _always(data), outcome=READ)
    both = x + operation("r", "Relu", "x") + operation("r", "Tanh", "x")
    yield Case("F18", "saved_model with a name twice", "m.pb", _always(both), "two operations of the name")
    yield Case("F15", "saved_model nested 10,000 deep", "m.pb", lambda _: _deep_pb())
    yield Case(
        "F18",
        "saved_model in a circle",
        "m.pb",
        _always(operation("a", "Relu", "b") + operation("b", "Relu", "a") + operation("c", "Relu", "a")),
    )


def _deep_pb() -> bytes:
    deep = b""
    for _ in range(10_000):
        deep = field(10, field(1, "n") + field(1, field(4, deep)))
    return field(1, field(1, "a") + field(2, "Const") + field(5, field(1, "k") + field(2, deep)))


def programs(_: Target) -> Iterator[Case]:
    """Yield StableHLO and jaxprs that are cut, deep, of no version, or endless."""
    bytecode = sample("stablehlo/gradients.mlirbc")
    yield Case("F6", "bytecode that is cut", "m.mlirbc", _always(bytecode[: len(bytecode) // 2]))
    yield Case("F6", "bytecode of version 99", "m.mlirbc", _always(bytecode[:4] + b"\xc7" + bytecode[5:]))
    body = "%0 = stablehlo.add %x, %x : tensor<4xf32>\n"
    open_, close = '"stablehlo.case"(%i) ({\n', "stablehlo.return %x : tensor<4xf32>\n}) : (tensor<i32>) -> tensor<4xf32>\n"
    deep = (
        "module {func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {\n"
        + open_ * 5_000
        + body
        + close * 5_000
        + "}}"
    )
    yield Case("F6", "regions 5,000 deep", "m.mlir", _always(deep.encode()))
    yield Case("F6", "a million operations", "m.mlir", lambda _: _million())
    head = "module {func.func @main(%x: tensor<SIZEx4xf32>) -> tensor<SIZEx4xf32> {\n"
    plain = head + "%0 = stablehlo.tanh %USED : tensor<SIZEx4xf32>\nreturn %0 : tensor<SIZEx4xf32>\n}}"
    yield Case("F16", "stablehlo size 2**63", "m.mlir", _always(plain.replace("SIZE", str(HUGE)).replace("USED", "x").encode()))
    yield Case("F16", "stablehlo size 2**62", "m.mlir", _always(plain.replace("SIZE", str(2**62)).replace("USED", "x").encode()))
    yield Case(
        "F18",
        "stablehlo that uses what nothing makes",
        "m.mlir",
        _always(plain.replace("SIZE", "8").replace("USED", "0").encode()),
    )
    yield Case(
        "F16", "jaxpr size 2**63", "m.jaxpr", _always(b"{ lambda ; a:f32[9223372036854775808,2]. let b:f32[2] = tanh a in (b,) }")
    )
    yield Case(
        "F18", "jaxpr that uses what nothing makes", "m.jaxpr", _always(b"{ lambda ; a:f32[2]. let b:f32[2] = tanh c in (b,) }")
    )


def _million() -> bytes:
    lines = "".join(f"%{at + 1} = stablehlo.add %{at}, %{at} : tensor<4xf32>\n" for at in range(1_000_000))
    return (
        f"module {{func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}return %1000000 : tensor<4xf32>\n}}}}".encode()
    )


def weights(_: Target) -> Iterator[Case]:
    """Yield safetensors and GGUF whose headers lie."""

    def safe(entries: dict[str, Any], data: bytes = b"", length: int | None = None) -> bytes:
        header = json.dumps(entries).encode()
        return struct.pack("<Q", len(header) if length is None else length) + header + data

    def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
        return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}

    broken = {
        "a header of 2**63": safe({}, length=HUGE), "a header longer than the file": safe({}, length=10**6),
        "a gap": safe({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 12, 20)}, bytes(20)),
        "an overlap": safe({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
        "an unknown dtype": safe({"a": entry("F7", [2], 0, 8)}, bytes(8)),
        "a product over 2**62": safe({"a": entry("F32", [2**40, 2**40], 0, 8)}, bytes(8)),
        "a negative size": safe({"a": entry("F32", [-2], 0, 8)}, bytes(8)),
    }  # fmt: skip
    for what, data in broken.items():
        yield Case(
            "F16" if "2**62" in what or "negative" in what else "F17", f"safetensors with {what}", "m.safetensors", _always(data)
        )
    for what, counts in {"tensors": (HUGE, 0), "keys": (0, HUGE), "a million keys": (0, 10**6)}.items():
        yield Case("F17", f"gguf that claims {what}", "m.gguf", _always(b"GGUF" + struct.pack("<IQQ", 3, *counts) + bytes(64)))


def archives(_: Target) -> Iterator[Case]:
    """Yield bombs and odd archives in the formats that are zips, and captures that unpack without end."""
    yield Case(
        "F11",
        "keras whose config unpacks to 400 MB",
        "m.keras",
        lambda _: packed({"metadata.json": b"{}", "config.json": b"[" + b" " * 400_000_000 + b"]"}),
    )
    yield Case(
        "F11",
        "pt2 whose program unpacks to 200 MB",
        "m.pt2",
        lambda _: packed({"serialized_exported_program.json": b" " * 200_000_000}),
    )
    yield Case("F11", "capture that unpacks to 2 GB", "m.tandem.json", lambda _: _squeezed(2_000))
    yield Case("F12", "keras of 200,000 members", "m.keras",
               lambda _: replaced(sample("keras/tabular.keras"), {f"{at}": b"" for at in range(200_000)}))  # fmt: skip
    kept = io.BytesIO(sample("keras/tabular.keras"))
    with zipfile.ZipFile(kept, "a") as archive:
        info = zipfile.ZipInfo("CONFIG.JSON")
        archive.writestr(info, b"{}")
    yield Case("F12", "keras with a case twin", "m.keras", _always(kept.getvalue()), outcome=READ)
    document = json.loads(gzip.decompress(sample("captured/images.tandem.json")))
    yield Case("F18", "capture that runs backwards", "m.tandem.json", _always(json.dumps(_backwards(document)).encode()))


def _backwards(document: dict[str, Any]) -> dict[str, Any]:
    """Return a capture whose operations stand in the wrong order."""
    return {**document, "nodes": document["nodes"][::-1]}


def _squeezed(megabytes: int) -> bytes:
    kept = io.BytesIO()
    with gzip.GzipFile(fileobj=kept, mode="wb", mtime=0) as file:
        file.write(b'{"schema": 1, "x": "')
        for _ in range(megabytes):
            file.write(b" " * 1_000_000)
    return kept.getvalue()


def wrapped(_: Target) -> Iterator[Case]:
    """Yield files of one format under the name of another, two formats in one file, and names that mislead."""
    for path, name, said in [("onnx/dense.onnx", "m.keras", ""), ("keras/tabular.keras", "m.onnx", ""),
                             ("gguf/llama.gguf", "m.safetensors", ""),
                             ("hdf5/latest.h5", "m.pt2", ""), ("pt2/images.pt2", "m.gguf", "")]:  # fmt: skip
        yield Case("F10", f"{path.partition('/')[0]} called {name}", name, _always(sample(path)), said, outcome=EITHER)
    polyglot = sample("gguf/llama.gguf") + sample("keras/tabular.keras")
    for name in ("m.gguf", "m.keras", "m"):
        yield Case("F10", f"GGUF and zip in one, called {name}", name, _always(polyglot), outcome=EITHER)
    odd = [
        "../../etc/m",
        "..\\..\\m",
        "C:\\m",
        "a\0b",
        "a\nb\x1b[31m",
        "x" * 5_000,
        "\u202eevil",
        "CON",
        "-rf",
        "%2e%2e",
        "<script>",
    ]
    for name in odd:
        yield Case("F9", f"name {name[:12]!r}", f"{name}.onnx", _always(sample("onnx/dense.onnx")), outcome=READ)


def cases(target: Target) -> list[Case]:
    """Return all of them."""
    makers = (keras, hdf5, pickles, configs, onnx, saved_models, programs, weights, archives, wrapped)
    return [case for make in makers for case in make(target)]


def _always(data: bytes) -> Callable[[Target], bytes]:
    return lambda _: data
