"""HDF5's groups: what an object holds, by symbol tables and B-trees, by link messages, and by fractal heaps where there are many.

Only hard links are followed. Soft and external links, external storage and virtual datasets are told, never opened.
Source: HDF5 File Format Specification, version 3 (The HDF Group), sections III.A to III.G and IV.A.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import BadInput
from intake.readers.hdf5_bytes import Cursor, Hdf5, Message, broken, datatype_of, shape_of

MOST_OBJECTS, MOST_DEPTH, MOST_TEXT = 400_000, 64, 64 * 2**20


@dataclass(frozen=True, slots=True)
class Link:
    """A name in a group, and the address of the object; None for a link that is not followed."""

    name: str
    address: int | None


@dataclass(frozen=True, slots=True)
class _Heap:
    """A fractal heap's header."""

    id_length: int
    flags: int
    width: int
    start: int
    most_direct: int
    bits: int
    root: int
    rows: int
    length_bytes: int

    @property
    def offset_bytes(self) -> int:
        return (self.bits + 7) // 8


def links_of(file: Hdf5, messages: list[Message]) -> Iterator[Link]:
    """Yield the links of a group.

    Args:
        file: that holds it.
        messages: of its header.

    Raises:
        BadInput: structures that do not hold together.
    """
    for message in messages:
        if message.kind == 0x11:
            cursor = file.cursor(message.body)
            yield from _symbols(file, cursor.address(), cursor.address())
        elif message.kind == 0x06:
            yield _link(file.cursor(message.body))
        elif message.kind == 0x02:
            cursor = file.cursor(message.body)
            cursor.take(1)
            cursor.take(8 if cursor.number(1) & 1 else 0)
            heap, tree = cursor.address(), cursor.address()
            if not file.undefined(heap) and not file.undefined(tree):
                yield from (_link(file.cursor(body)) for body in _dense(file, heap, tree, 4))


def attributes_of(file: Hdf5, messages: list[Message], wanted: frozenset[str]) -> dict[str, str]:
    """Return the attributes of an object that are texts, of those that are wanted.

    Args:
        file: that holds it.
        messages: of its header.
        wanted: names.

    Raises:
        BadInput: structures that do not hold together.
    """
    bodies = [message.body for message in messages if message.kind == 0x0C]
    for message in messages:
        if message.kind == 0x15:
            cursor = file.cursor(message.body)
            cursor.take(1)
            cursor.take(2 if cursor.number(1) & 1 else 0)
            heap, tree = cursor.address(), cursor.address()
            if not file.undefined(heap) and not file.undefined(tree):
                bodies += _dense(file, heap, tree, 0)
    pairs = [_attribute(file, body, wanted) for body in bodies]
    return dict(pair for pair in pairs if pair is not None)


def _attribute(file: Hdf5, body: bytes, wanted: frozenset[str]) -> tuple[str, str] | None:
    cursor = file.cursor(body)
    version, flags = cursor.number(1), cursor.number(1)
    sizes = [cursor.number(2) for _ in range(3)]
    cursor.take(1 if version == 3 else 0)
    if version not in (1, 2, 3):
        raise broken(f"an attribute of version {version}")
    parts: list[bytes] = []
    for size in sizes:
        parts.append(cursor.take(size))
        cursor.take(-size % 8 if version == 1 else 0)
    name = parts[0].rstrip(b"\0").decode("utf-8", "replace")
    if name not in wanted or (version > 1 and flags & 3):
        return None
    kind, shape = datatype_of(parts[1]), shape_of(file.cursor(parts[2]))
    if shape not in ((), (1,)):
        return None
    if kind.text == "fixed":
        return name, cursor.take(kind.size).rstrip(b"\0").decode("utf-8", "replace")
    return (name, _heap_text(file, cursor)) if kind.text == "varying" else None


def _heap_text(file: Hdf5, cursor: Cursor) -> str:
    """Return a text from the global heap."""
    length, address, wanted = cursor.number(4), cursor.address(), cursor.number(4)
    head = file.at(address, 8 + file.length_size)
    if head.take(4) != b"GCOL":
        raise broken(f"no global heap at {address}")
    head.take(4)
    size = head.length()
    at, end = 8 + file.length_size, min(size, file.size - file.base - address)
    while at + 8 + file.length_size <= end:
        entry = file.at(address + at, 8 + file.length_size)
        index = entry.number(2)
        entry.take(6)
        held = entry.length()
        at += 8 + file.length_size
        if index == wanted:
            if length > held or held > MOST_TEXT:
                raise broken(f"a text of {length} bytes in {held}")
            return file.at(address + at, length).body.decode("utf-8", "replace")
        if index == 0:
            break
        at += held + -held % 8
    raise broken(f"no text {wanted} in its global heap")


def _link(cursor: Cursor) -> Link:
    version, flags = cursor.number(1), cursor.number(1)
    if version != 1:
        raise broken(f"a link of version {version}")
    kind = cursor.number(1) if flags & 8 else 0
    cursor.take(8 if flags & 4 else 0)
    cursor.take(1 if flags & 16 else 0)
    name = cursor.take(cursor.number(1 << (flags & 3))).decode("utf-8", "replace")
    return Link(name, cursor.address() if kind == 0 else None)


def _symbols(file: Hdf5, tree: int, heap: int) -> Iterator[Link]:
    """Yield what a symbol table holds: a B-tree of nodes of names, which stand in a local heap."""
    head = file.at(heap, 8 + 2 * file.length_size + file.offset_size)
    if head.take(4) != b"HEAP":
        raise broken(f"no local heap at {heap}")
    head.take(4)
    size = head.length()
    head.length()
    names = file.at(head.address(), size).body
    pending, seen = [(tree, 0)], set[int]()
    while pending:
        address, depth = pending.pop()
        if address in seen or depth > MOST_DEPTH or len(seen) > MOST_OBJECTS:
            raise broken("a tree of names that runs in a circle")
        seen.add(address)
        node = file.at(address, 8)
        if node.body[:4] == b"SNOD":
            yield from _symbol_node(file, address, int.from_bytes(node.body[6:8], "little"), names)
            continue
        if node.body[:4] != b"TREE" or node.body[4] != 0:
            raise broken(f"no tree of names at {address}")
        used = int.from_bytes(node.body[6:8], "little")
        body = file.at(address + 8 + 2 * file.offset_size, used * (file.offset_size + file.length_size))
        children: list[int] = []
        for _ in range(used):
            body.length()
            children.append(body.address())
        pending += [(child, depth + 1) for child in reversed(children)]


def _symbol_node(file: Hdf5, address: int, used: int, names: bytes) -> Iterator[Link]:
    body = file.at(address + 8, used * (2 * file.offset_size + 24))
    for _ in range(used):
        at, target, cached = body.address(), body.address(), body.number(4)
        body.take(20)
        end = names.find(b"\0", at)
        if at >= len(names) or end < 0:
            raise broken("a name outside its heap")
        yield Link(names[at:end].decode("utf-8", "replace"), None if cached == 2 else target)


def _dense(file: Hdf5, heap_address: int, tree: int, skip: int) -> list[bytes]:
    """Return the objects of a fractal heap that a B-tree of version 2 lists.

    Args:
        file: that holds both.
        heap_address, tree: of their headers.
        skip: bytes of a record before the identifier.
    """
    heap = _heap(file, heap_address)
    found: list[bytes] = []
    for record in _records(file, tree):
        identifier = file.cursor(record[skip : skip + heap.id_length])
        kind = identifier.number(1) >> 4 & 3
        if kind == 2:
            found.append(identifier.take((record[skip] & 15) + 1))
        elif kind == 0:
            offset, length = identifier.number(heap.offset_bytes), identifier.number(heap.length_bytes)
            found.append(file.at(_place(file, heap, heap.root, heap.rows, 0, offset, length, 0), length).body)
        else:
            raise broken("a huge object among its names")
    return found


def _heap(file: Hdf5, address: int) -> _Heap:
    head = file.at(address, 22 + 12 * file.length_size + 3 * file.offset_size)
    if head.take(4) != b"FRHP" or head.number(1) != 0:
        raise broken(f"no fractal heap at {address}")
    id_length, filters, flags, most = head.number(2), head.number(2), head.number(1), head.number(4)
    head.take(10 * file.length_size + 2 * file.offset_size)
    width, start, direct, bits = head.number(2), head.length(), head.length(), head.number(2)
    head.take(2)
    root, rows = head.address(), head.number(2)
    if filters or not 0 < bits <= 64 or not 0 < width <= 1024 or not 0 < start <= direct or rows > 64:
        raise broken("a fractal heap of filters or sizes that are not read here")
    length_bytes = max((min(direct, most).bit_length() + 7) // 8, 1)
    return _Heap(id_length, flags, width, start, direct, bits, root, rows, length_bytes)


def _place(file: Hdf5, heap: _Heap, block: int, rows: int, begin: int, offset: int, length: int, depth: int) -> int:
    """Return the address of an offset in a fractal heap, found through its doubling table."""
    if depth > 16 or file.undefined(block):
        raise broken("a fractal heap without the block of an object")
    if rows == 0:
        return block + offset - begin
    at, address = begin, block + 5 + file.offset_size + heap.offset_bytes
    for row in range(rows):
        size = heap.start << max(row - 1, 0)
        if offset >= at + size * heap.width:
            at += size * heap.width
            address += heap.width * file.offset_size
            continue
        column = (offset - at) // size
        child = file.at(address + column * file.offset_size, file.offset_size).address()
        at += column * size
        if size <= heap.most_direct:
            return _place(file, heap, child, 0, at, offset, length, depth + 1)
        inner = size.bit_length() - (heap.start * heap.width).bit_length() + 1
        return _place(file, heap, child, inner, at, offset, length, depth + 1)
    raise broken("an object outside its fractal heap")


def _records(file: Hdf5, address: int) -> list[bytes]:
    """Return the records of a B-tree of version 2, in order."""
    head = file.at(address, 22 + file.offset_size + file.length_size)
    if head.take(4) != b"BTHD":
        raise broken(f"no B-tree at {address}")
    head.take(2)
    node, size, depth = head.number(4), head.number(2), head.number(2)
    head.take(2)
    root, used = head.address(), head.number(2)
    if not 16 <= node <= 2**20 or not 0 < size < node or depth > 16:
        raise broken("a B-tree of sizes that are not read here")
    # per depth: the most records of a node, and of all below it (specification, III.A.2)
    most = [(node - 10) // size]
    total = [most[0]]
    for level in range(1, depth + 1):
        pointer = file.offset_size + _bytes_for(most[level - 1]) + (_bytes_for(total[level - 1]) if level > 1 else 0)
        most.append((node - 10 - pointer) // (size + pointer))
        total.append((most[level] + 1) * total[level - 1] + most[level])
    found: list[bytes] = []
    if not file.undefined(root) and used:
        _walk(file, root, used, depth, size, (most, total), found)
    return found


def _bytes_for(number: int) -> int:
    return max((number.bit_length() + 7) // 8, 1)


def _walk(
    file: Hdf5, address: int, used: int, depth: int, size: int, most: tuple[list[int], list[int]], found: list[bytes]
) -> None:
    extra = 0
    if depth:
        extra = file.offset_size + _bytes_for(most[0][depth - 1]) + (_bytes_for(most[1][depth - 1]) if depth > 1 else 0)
    body = file.at(address, 6 + used * size + (used + 1) * extra)
    if body.take(4) != (b"BTIN" if depth else b"BTLF") or len(found) + used > MOST_OBJECTS:
        raise broken(f"no node of a B-tree at {address}")
    body.take(2)
    records = [body.take(size) for _ in range(used)]
    if not depth:
        found += records
        return
    for at in range(used + 1):
        child, inside = body.address(), body.number(_bytes_for(most[0][depth - 1]))
        body.take(_bytes_for(most[1][depth - 1]) if depth > 1 else 0)
        _walk(file, child, inside, depth - 1, size, most, found)
        found += records[at : at + 1]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: its path, shape and dtype."""

    path: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds: datasets, the wanted texts of its root, and what was left out."""

    datasets: tuple[Dataset, ...]
    texts: dict[str, str]
    notes: tuple[str, ...]


def contents_of(file: Hdf5, wanted: frozenset[str] = frozenset()) -> Contents:
    """Return what a file holds, from its root.

    Args:
        file: open.
        wanted: attributes of the root that are texts.

    Raises:
        BadInput: structures that do not hold together, or more than is read here.
    """
    found: list[Dataset] = []
    notes: dict[str, None] = {}
    root = file.messages(file.root)
    texts = attributes_of(file, root, wanted)
    pending: list[tuple[str, int, int]] = [("", file.root, 0)]
    seen = {file.root}
    while pending:
        path, address, depth = pending.pop()
        messages = root if depth == 0 else file.messages(address)
        told = _dataset(file, path, messages, notes)
        if told is not None:
            found.append(told)
            continue
        for link in links_of(file, messages):
            below = f"{path}/{link.name}" if path else link.name
            if link.address is None:
                notes[f"the link {below:.120} leads elsewhere: it is not followed"] = None
            elif link.address not in seen:
                seen.add(link.address)
                pending.append((below, link.address, depth + 1))
            if depth >= MOST_DEPTH or len(seen) > MOST_OBJECTS or len(below) > 4096:
                raise BadInput(
                    f"HDF5 of more than {MOST_OBJECTS} objects, or deeper than {MOST_DEPTH}", "fewer", "hand in a part of it"
                )
    return Contents(tuple(sorted(found, key=lambda one: one.path)), texts, tuple(notes)[:100])


def _dataset(file: Hdf5, path: str, messages: list[Message], notes: dict[str, None]) -> Dataset | None:
    kinds = {message.kind: message for message in reversed(messages)}
    if 0x01 not in kinds or 0x03 not in kinds:
        return None
    shape = shape_of(file.cursor(kinds[0x01].body))
    layout = kinds[0x08].body if 0x08 in kinds else b""
    if 0x07 in kinds or (len(layout) > 1 and layout[0] >= 3 and layout[1] == 3):
        notes[f"the dataset {path:.120} lies in another file: it is not opened"] = None
        return Dataset(path, (), "")
    kind = datatype_of(kinds[0x03].body) if not kinds[0x03].shared else None
    if kind is None or not kind.dtype or shape is None:
        notes[f"the dataset {path:.120} has a type that is not read here"] = None
        return Dataset(path, (), "")
    declared = kind.size
    for extent in shape:
        declared = min(declared * extent, 2**64)
    packed = 0x0B in kinds
    if declared > file.size * (1000 if packed else 1) + 4096:
        raise BadInput(f"HDF5 whose dataset {path:.80} claims {declared} bytes in a file of {file.size}", "data that is there",
                       "save the file again with h5py or Keras")  # fmt: skip
    return Dataset(path, shape, kind.dtype)
