"""The reduced model: each block of a workload once, in the order of the model.

A model of layers that repeat costs its reduced model plus what each further layer adds. Blocks that stand alone are so measured
among their neighbours, where a compiler fuses across them and runs branches side by side.
"""

from core.workload import Block, Size

REDUCED_MODEL = "reduced_model"
Part = tuple[str, dict[str, Size]]


def reduced_block(blocks: tuple[Block, ...]) -> Block | None:
    """Return one block that holds each of `blocks` once; None when there are none or their batches differ.

    Its sizes are those of its parts behind `part_NN.`, and one `batch` for all of them.

    Args:
        blocks: in the order of the model.
    """
    batches = {block.size("batch") for block in blocks}
    if len(batches) != 1:
        return None
    sizes: dict[str, Size] = {"batch": batches.pop()}
    for index, block in enumerate(blocks):
        part = {"kind": block.kind} | {name: size for name, size in block.sizes if name != "batch"}
        sizes |= {f"part_{index:02d}.{name}": size for name, size in part.items()}
    return Block(
        "each block once",
        REDUCED_MODEL,
        tuple(sorted(sizes.items())),
        1,
        tuple(op for block in blocks for op in block.ops_forward),
        tuple(op for block in blocks for op in block.ops_backward),
        sum(block.parameter_count for block in blocks),
        sum(block.activation_bytes for block in blocks),
    )


def parts_of(sizes: dict[str, Size]) -> dict[str, Part]:
    """Return kind and sizes of each part by its name, in the order of the model.

    Args:
        sizes: of a block that `reduced_block` made.
    """
    found: dict[str, dict[str, Size]] = {}
    for name, size in sizes.items():
        part, dot, key = name.partition(".")
        if dot:
            found.setdefault(part, {"batch": sizes["batch"]})[key] = size
    ordered = sorted(found, key=lambda part: int(part.removeprefix("part_")))
    return {part: (str(found[part].pop("kind")), found[part]) for part in ordered}
