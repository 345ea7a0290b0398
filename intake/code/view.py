"""What the matchers see of a file: its names, the kinds of its values, where the current line runs, and a way to report.

One view a file; a notebook's cells share one, so that names of earlier cells are known in later ones.
"""

import ast
from dataclasses import dataclass, field, replace

from core.finding import ONCE, Finding, Import, Place
from intake.code.inference import kind_of_expression
from intake.code.names import dotted_of
from intake.code.values import Scope

_SNIPPET = 160
_FAMILIES = {
    "torch": "torch", "torchvision": "torch", "torchaudio": "torch", "torchtext": "torch", "torch_xla": "torch", "timm": "torch",
    "pytorch_lightning": "torch", "lightning": "torch", "detectron2": "torch", "fairseq": "torch", "mmcv": "torch",
    "mmdet": "torch",
    "apex": "torch", "fvcore": "torch", "accelerate": "torch", "deepspeed": "torch", "megatron": "torch", "diffusers": "torch",
    "kornia": "torch", "torch_geometric": "torch", "ignite": "torch", "torchmetrics": "torch", "transformer_engine": "torch",
    "tensorflow": "tensorflow", "tensorflow_datasets": "tensorflow", "tensorflow_addons": "tensorflow",
    "tensorflow_hub": "tensorflow",
    "keras": "keras", "tf_keras": "keras", "keras_cv": "keras", "keras_nlp": "keras", "keras_hub": "keras",
    "jax": "jax", "flax": "jax", "haiku": "jax", "optax": "jax", "equinox": "jax", "jaxlib": "jax", "chex": "jax",
    "mxnet": "mxnet", "gluoncv": "mxnet", "gluonnlp": "mxnet", "gluonts": "mxnet",
}


@dataclass(frozen=True, slots=True)
class Context:
    """Where the current line runs.

    Args:
        where: `ONCE`, `LOOP` or `STEP`.
        guarded: after a test for the device.
        periodic: every so many steps.
        optional: in a `try` or behind a test.
        tested: in the second argument of isinstance.
        setup: whether the file builds a package.
    """

    where: str = ONCE
    guarded: bool = False
    periodic: bool = False
    optional: bool = False
    tested: bool = False


@dataclass(slots=True)
class View:
    """One file while it is walked.

    Args:
        name: of the file.
        lines: of its text.
        topics: topic by rule id.
        most: findings of this file at most.
        frameworks: families that the file imports.
        scope, context: where the walk is.
        cell: of a notebook.
        offset: lines before the tree that is walked.
    """

    name: str
    lines: list[str]
    topics: dict[str, str]
    most: int
    frameworks: set[str] = field(default_factory=set[str])
    scope: Scope = field(default_factory=Scope)
    context: Context = Context()
    cell: int | None = None
    offset: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    imports: list[Import] = field(default_factory=list[Import])
    loop_lines: int = 0
    steps: int = 0
    full: bool = False
    seen: set[tuple[str, int, int | None]] = field(default_factory=set[tuple[str, int, int | None]])

    def emit(self, rule: str, line: int, column: int = 0) -> None:
        """Report that a rule applies, once for each line.

        Args:
            rule: its id.
            line, column: in the tree that is walked.
        """
        at = line + self.offset
        key = (rule, at, self.cell)
        if key in self.seen:
            return
        if len(self.findings) >= self.most:
            self.full = True
            return
        self.seen.add(key)
        text = self.lines[at - 1].strip() if 0 < at <= len(self.lines) else ""
        snippet = text if len(text) <= _SNIPPET else text[: _SNIPPET - 1] + "…"
        context = self.context
        self.findings.append(Finding(rule, self.name, at, column, snippet, self.topics[rule], self.cell, context.where,
                                     context.guarded, context.periodic))

    def at(self, rule: str, node: ast.expr | ast.stmt) -> None:
        """Report that a rule applies to a node; of an attribute the line of its last name counts."""
        if isinstance(node, ast.Attribute):
            self.emit(rule, node.end_lineno or node.lineno, max((node.end_col_offset or 0) - len(node.attr), 0))
        else:
            self.emit(rule, node.lineno, node.col_offset)

    def add_import(self, full: str, line: int) -> None:
        """Remember what is imported, and which family of frameworks that belongs to.

        Args:
            full: the dotted name.
            line: in the tree that is walked.
        """
        root = full.split(".", maxsplit=1)[0]
        if not root:
            return
        family = _FAMILIES.get(root)
        if family is not None:
            self.frameworks.add(family)
            if full.startswith(("tensorflow.keras", "tensorflow.python.keras")):
                self.frameworks.add("keras")
        optional = self.context.optional or self.context.guarded
        self.imports.append(Import(full, Place(self.name, line + self.offset, self.cell), optional))

    def kind(self, node: ast.expr) -> str:
        """Return the kind of an expression's value."""
        return kind_of_expression(node, self.scope)

    def dotted(self, node: ast.expr) -> str:
        """Return the full name of an expression, or an empty text."""
        return dotted_of(node, self.scope)

    def within(self, **changes: object) -> Context:
        """Return the present context with changes."""
        return replace(self.context, **changes)  # type: ignore[arg-type]
