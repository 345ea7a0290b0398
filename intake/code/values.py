"""What little is known of the value of a name: which dotted name it stands for, and whether it is a tensor, an array or neither.

A guess that errs towards knowing nothing: `UNKNOWN` fires only those rules that need no knowledge.
"""

from dataclasses import dataclass, field

UNKNOWN, TENSOR, BOOL, WEAK = "unknown", "tensor", "bool", "weak"
HOST, PLAIN, CALLABLE, DATASET = "host", "plain", "callable", "dataset"
"""TENSOR: on a device. BOOL: a tensor of truth values. WEAK: probably a tensor (an argument of forward). HOST: a numpy array.
PLAIN: a Python number, text or container. CALLABLE: a layer. DATASET: a tf.data pipeline."""
ON_DEVICE = frozenset({TENSOR, BOOL})


@dataclass(frozen=True, slots=True)
class Value:
    """What a name stands for.

    Args:
        dotted: the full name, such as `torch.cuda`; empty when it is no module, class or function that was imported.
        kind: one of the kinds above.
    """

    dotted: str = ""
    kind: str = UNKNOWN


NOTHING = Value()


@dataclass(slots=True)
class Scope:
    """Names of a module, class or function, innermost first; filled while the file is walked.

    Args:
        parent: the scope around it.
        is_class: a class: its names are not seen by its methods, but its attributes are.
        names: values by name.
        attributes: values of `self.NAME`, of a class.
        stars: modules of which everything was imported.
        differentiated: names, `NAME` or `self.NAME`, that must be tensors where nothing else is known of them.
    """

    parent: "Scope | None" = None
    is_class: bool = False
    names: dict[str, Value] = field(default_factory=dict[str, Value])
    attributes: dict[str, Value] = field(default_factory=dict[str, Value])
    stars: list[str] = field(default_factory=list[str])
    differentiated: frozenset[str] = frozenset()

    def find(self, name: str) -> Value:
        """Return the value of a name as seen from here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not scope.is_class):
                return scope.names[name]
            scope = scope.parent
        return NOTHING

    def knows(self, name: str) -> bool:
        """Whether a name was bound in this scope or around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True
            scope = scope.parent
        return False

    def enclosing_class(self) -> "Scope | None":
        """Return the class that this scope is in."""
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def star_modules(self) -> list[str]:
        """Return modules of which everything was imported, here or around."""
        found: list[str] = []
        scope: Scope | None = self
        while scope is not None:
            found.extend(scope.stars)
            scope = scope.parent
        return found
