"""Turns a jaxpr's text into a program of plain records.

A jaxpr that others refer to by name is read once. Bodies of kernels (Pallas, Triton) are never looked into: what they compute
on a device is not what their text says.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.symbols import Extent
from intake.readers.jaxpr_operations import Primitive, translated
from intake.readers.jaxpr_syntax import Tokens, pieces
from intake.readers.stablehlo_program import (
    MOST_OPERATIONS,
    Function,
    Instruction,
    Program,
    Region,
    Type,
    Value,
    dtype_of,
    region_of,
)
from intake.readers.stablehlo_symbols import Expressions, name_symbols
from intake.readers.symbolic import Extents, Unclear

_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "core_closed_call": "call_jaxpr",
    "xla_call": "call_jaxpr", "named_call": "call_jaxpr", "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr",
    "remat_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",    "custom_jvp_call_jaxpr": "fun_jaxpr", "custom_vmap_call": "call",
    "shard_map": "jaxpr", "xla_pmap": "call_jaxpr",
    "run_state": "jaxpr",     "custom_partitioning": "call", "composite": "jaxpr", "call": "call_jaxpr", "jaxpr_call": "jaxpr",
}  # fmt: skip
_REMAT = frozenset({"remat", "remat2", "checkpoint", "remat_call"})
_TYPE = re.compile(r"(?P<dtype>[A-Za-z_]\w*(?:<\w+>)?)(?:\[(?P<dims>.*)\])?$", re.DOTALL)
_LITERALS = frozenset({"True", "False", "inf", "nan", "None"})
_WORDS = frozenset({"True", "False", "None"})
"""Literals that no name is written like."""
_FLOAT = re.compile(r"[.e]|inf|nan")
_MOST_DEPTH = 60


@dataclass(frozen=True, slots=True)
class _Place:
    """Names that can be seen, how deep, and what was made without a name."""

    names: dict[str, int]
    depth: int
    unnamed: list[int] = field(default_factory=list[int])


class JaxprReader:
    """Reads one text.

    Args:
        text: of the jaxpr.
        replacements: of symbols, by the name that Tandem gave them.
    """

    def __init__(self, text: str, replacements: Mapping[str, Extent]) -> None:
        self.tokens = Tokens(text)
        self.extents = Extents({})
        self.expressions = Expressions({}, self.extents)
        self.replacements = replacements
        self.named: dict[str, int] = {}
        self.regions: dict[int, Region] = {}
        self.types: dict[str, Type] = {}
        self.types_of: dict[int, Type] = {}
        self.made = 0
        self.operations = 0
        self.stack_at = 0
        self.remats = 0

    def program(self, title: str) -> Program:
        """Return the whole text as a program.

        Raises:
            Unclear: it is none.
            Pinned: a symbol has to be a number.
        """
        at = 0
        while self.tokens.word(at) == "let" and self.tokens.word(at + 2) == "=":
            self.named[self.tokens.word(at + 1)] = at + 3
            at = self._expect(self.tokens.after(at + 3), "in")
        start = self._lambda(at)
        if self.tokens.after(at) != len(self.tokens):
            raise Unclear(f"more text after the jaxpr at {self.tokens.where(self.tokens.after(at))}")
        self._name_symbols(start)
        constants, _ = self._binders(start, ";")
        region = self._jaxpr(at, (), 0)
        roles = ["constant" if not self._type(written)[1].startswith(("fp", "bf", "complex")) else "" for _, written in constants]
        roles += [""] * (len(region.arguments) - len(roles))
        notes = (f"{self.remats} parts are computed again in the backward pass (remat)",) if self.remats else ()
        function = Function(region, ("",) * len(roles), tuple(roles))
        return Program("jaxpr", title, {"main": function}, "main", tuple(self.extents.values.items()), notes)

    def _name_symbols(self, at: int) -> None:
        constants, at = self._binders(at, ";")
        binders, _ = self._binders(at, ".")
        shapes: list[list[str]] = []
        for _, written in (*constants, *binders):
            found = _TYPE.match(written)
            shapes.append([one.partition("@")[0] for one in pieces(found["dims"] or "")] if found else [])
        name_symbols(shapes, self.expressions)
        for name, replaced in self.replacements.items():
            known = [symbol for symbol, extent in self.expressions.names.items() if str(extent) == name]
            for symbol in known:
                self.expressions.names[symbol] = replaced
        self.types.clear()

    def _expect(self, at: int, word: str) -> int:
        if self.tokens.word(at) != word:
            raise Unclear(f"{self.tokens.word(at)[:40]!r} at {self.tokens.where(at)} where {word!r} is expected")
        return at + 1

    def _lambda(self, at: int) -> int:
        return self._expect(self._expect(at, "{"), "lambda")

    def _binders(self, at: int, end: str) -> tuple[list[tuple[str, str]], int]:
        """Names and types up to a word; and the token behind it."""
        found: list[tuple[str, str]] = []
        while self.tokens.word(at) != end:
            binder = self._binder(at)
            if binder is None:
                raise Unclear(f"{self.tokens.word(at)[:40]!r} at {self.tokens.where(at)} where a name with its type is expected")
            found.append(binder[:2])
            at = binder[2]
        return found, at + 1

    def _binder(self, at: int) -> tuple[str, str, int] | None:
        tokens = self.tokens
        name = tokens.word(at)
        if not name or not (name[0].isalpha() or name[0] in "_*") or tokens.word(at + 1) != ":" or tokens.mates[at] >= 0:
            return None
        if name in _WORDS:
            return None
        start = end = at + 2
        if end >= len(tokens) or not tokens.word(end)[0].isalpha():
            return None
        end += 1
        while end < len(tokens) and tokens.touching(end) and (tokens.word(end)[0] in "<>[({@" or tokens.word(end - 1) == "<"):
            end = tokens.after(end)
        return name, tokens.between(start, end), end

    def _type(self, written: str) -> Type:
        known = self.types.get(written)
        if known is not None:
            return known
        text = re.sub(r"\{[^{}\[\]]*\}$|\([^()]*\)$", "", written)
        if text.startswith("Ref"):
            text = text.partition("{")[2].rpartition("}")[0]
        found = _TYPE.match(text)
        if found is None:
            raise Unclear(f"a type {written[:60]!r}")
        if found["dims"] is None:
            made: Type = ((), "token")
        else:
            dtype = found["dtype"] if found["dtype"].startswith("key<") else found["dtype"].partition("<")[0]
            shape = tuple(self.expressions.read(one.partition("@")[0]) for one in pieces(found["dims"]))
            made = (shape, dtype_of(dtype))
        self.types[written] = made
        return made

    def _value(self, written: str) -> Value:
        self.made += 1
        value = Value(self.made, self._type(written))
        self.types_of[value.number] = value.type
        return value

    def _jaxpr(self, at: int, bound: Sequence[int], depth: int) -> Region:
        """Read a jaxpr that stands at a token, or is named there.

        Args:
            at: its opening bracket, or its name.
            bound: values outside that its first arguments are; they are no arguments of the region then.
            depth: of nesting.
        """
        if depth > _MOST_DEPTH:
            raise Unclear(f"jaxprs over {_MOST_DEPTH} deep")
        at = self.named.get(self.tokens.word(at), at)
        if not bound and at in self.regions:
            return self.regions[at]
        start = self._lambda(at)
        constants, start = self._binders(start, ";")
        binders, start = self._binders(start, ".")
        names: dict[str, int] = {}
        body: list[Instruction] = []
        given: list[Value] = []
        for name, written in constants:
            value = self._value(written)
            names[name] = value.number
            if depth == 0:
                given.append(value)
            else:
                body.append(Instruction("constant", "constant", (), (value,), {}))
        for place, (name, written) in enumerate(binders):
            if place < len(bound):
                names[name] = bound[place]
                continue
            given.append(self._value(written))
            names[name] = given[-1].number
        returns = self._equations(self._expect(start, "let"), _Place(names, depth), body)
        region = region_of(given, body, returns)
        if not bound:
            self.regions[at] = region
        return region

    def _equations(self, at: int, place: _Place, body: list[Instruction]) -> list[int]:
        tokens = self.tokens
        while True:
            if tokens.word(at) == ";":
                at += 1
            elif tokens.word(at) == "in" and tokens.word(at + 1) == "(":
                break
            elif at >= len(tokens) or tokens.word(at) == "}":
                raise Unclear(f"a jaxpr that ends without its results at {tokens.where(at)}")
            else:
                at = self._equation(at, place, body)
        close = tokens.mates[at + 1]
        returns: list[int] = []
        at += 2
        count = sum(tokens.word(one) == "_" for one in range(at, close))
        unnamed = iter(place.unnamed[max(0, len(place.unnamed) - count) :])  # given back, but read by nobody
        while at < close:
            if tokens.word(at) == ",":
                at += 1
                continue
            dropped = next(unnamed, None) if tokens.word(at) == "_" else None
            number, at = self._atom(at, place, body) if dropped is None else (dropped, at + 1)
            returns.append(number)
        return returns

    def _starts(self, at: int) -> bool:
        """Whether an equation starts here: names with types up to `=`, or a primitive without results."""
        first = at
        while (binder := self._binder(at)) is not None:
            at = binder[2]
            at += self.tokens.word(at) == ","
        if at > first:
            return self.tokens.word(at) in {"=", "<-"}
        named = re.match(r"[A-Za-z_][\w-]*$", self.tokens.word(at)) is not None
        return named and self.tokens.word(at + 1) == "[" and self.tokens.touching(at + 1)

    def _equation(self, at: int, place: _Place, body: list[Instruction]) -> int:
        tokens = self.tokens
        self.operations += 1
        if self.operations > MOST_OPERATIONS:
            raise Unclear(f"over {MOST_OPERATIONS} equations")
        started = tokens.starts[at]
        results: list[tuple[str, str]] = []
        while (binder := self._binder(at)) is not None:
            results.append(binder[:2])
            at = binder[2]
            at += tokens.word(at) == ","
        if results and tokens.word(at) == "<-":
            return self._reference(at, results, place, body)
        if results:
            at = self._expect(at, "=")
        primitive = tokens.word(at)
        if not re.match(r"[A-Za-z_]", primitive) or tokens.word(at + 1) in {"=", "<-"}:
            raise Unclear(f"{primitive[:40]!r} at {tokens.where(at)} where an equation is expected")
        at += 1
        spans: dict[str, tuple[int, int]] = {}
        if tokens.word(at) == "[" and tokens.touching(at):
            spans = tokens.parameters(at)
            at = tokens.after(at)
        operands: list[int] = []
        while (
            at < len(tokens)
            and tokens.word(at) not in {";", "}"}
            and not (tokens.word(at) == "in" and tokens.word(at + 1) == "(")
        ):
            if self._starts(at):
                break
            number, at = self._atom(at, place, body)
            operands.append(number)
        made = [self._value(written) for _, written in results]
        body.append(self._instruction(primitive, spans, operands, made, place, self._stack(started, at)))
        place.unnamed.extend(value.number for (name, _), value in zip(results, made, strict=True) if name == "_")
        place.names.update((name, value.number) for (name, _), value in zip(results, made, strict=True) if name not in {"_", "*"})
        return at

    def _reference(self, at: int, results: list[tuple[str, str]], place: _Place, body: list[Instruction]) -> int:
        """A value read from, or written to, a reference: a copy of what is read."""
        at += 1
        while at < len(self.tokens) and self.tokens.word(at) not in {";", "}"} and not self._starts(at):
            if self.tokens.word(at) == "in" and self.tokens.word(at + 1) == "(":
                break
            at = self.tokens.after(at)
        for name, written in results:
            value = self._value(written)
            body.append(Instruction("get", "iota", (), (value,), {}))
            place.names[name] = value.number
        return at

    def _stack(self, started: int, at: int) -> str:
        """The name stack that is printed beside an equation, where it is."""
        stacks = self.tokens.stacks
        while self.stack_at < len(stacks) and stacks[self.stack_at][0] < started:
            self.stack_at += 1
        end = self.tokens.starts[at] if at < len(self.tokens) else len(self.tokens.text)
        if self.stack_at < len(stacks) and stacks[self.stack_at][0] < end:
            return stacks[self.stack_at][1]
        return ""

    def _atom(self, at: int, place: _Place, body: list[Instruction]) -> tuple[int, int]:
        tokens = self.tokens
        word = tokens.word(at)
        typed = tokens.word(at + 1) == ":" and at + 2 < len(tokens)
        if word in place.names and not (typed and word in _LITERALS):
            return place.names[word], at + 1
        if not re.match(r"-?[\d.]|-?inf$|-?nan$|True$|False$|None$|\(", word):
            raise Unclear(f"{word[:40]!r} at {tokens.where(at)}, which nothing before it makes")
        end = tokens.after(at)
        written = "f32[]" if _FLOAT.search(word) else "i32[]"
        if tokens.word(end) == ":":
            start = end = end + 1
            end += 1
            while end < len(tokens) and tokens.touching(end) and tokens.word(end)[0] in "<[{":
                end = tokens.after(end)
            written = tokens.between(start, end)
        value = self._value(written)
        known: dict[str, object] = {"splat": 1}
        if re.fullmatch(r"-?\d{1,18}|True|False", word) and not value.type[1].startswith(("fp", "bf", "complex")):
            known["value"] = (int(word == "True") if word in _LITERALS else int(word),)
        body.append(Instruction("literal", "constant", (), (value,), known))
        return value.number, end

    def _instruction(self, name: str, spans: Mapping[str, tuple[int, int]], operands: list[int], made: list[Value], place: _Place,
                     stack: str) -> Instruction:  # fmt: skip
        tokens, depth = self.tokens, place.depth + 1
        results = tuple(made)
        if name in _CALLS:
            keys = (_CALLS[name], "jaxpr", "call_jaxpr", "fun_jaxpr", "call")
            inner = next((spans[one] for one in keys if one in spans), None)
            if inner is not None:
                self.remats += name in _REMAT
                body = self._jaxpr(inner[0], (), depth)
                return Instruction(name, "call", tuple(operands), results, {"path": stack}, (body,), stack)
        texts = {one: tokens.between(*span) for one, span in spans.items() if span[1] - span[0] < 400}
        if name == "scan" and "jaxpr" in spans:
            numbers = {one: self.expressions.read(texts[one]) for one in ("length", "num_consts", "num_carry") if one in texts}
            body = self._jaxpr(spans["jaxpr"][0], (), depth)
            attributes = {**numbers, "inside": _inside(stack, "scan")}
            return Instruction(name, "scan", tuple(operands), results, attributes, (body,), stack)
        if name == "while" and "cond_jaxpr" in spans and "body_jaxpr" in spans:
            return self._while(spans, texts, operands, results, depth, stack)
        if name == "cond" and "branches" in spans:
            inside: dict[str, object] = {"inside": stack}
            return Instruction(name, "case", tuple(operands), results, inside, self._branches(spans["branches"], depth), stack)
        ranks = tuple(len(self.types_of[one][0]) for one in operands)
        op, attributes, order = translated(Primitive(name, texts, ranks, self.expressions.read))
        if order is not None:
            operands = [operands[one] for one in order if one < len(operands)]
        return Instruction(name, op, tuple(operands), results, attributes, (), stack)

    def _while(self, spans: Mapping[str, tuple[int, int]], texts: Mapping[str, str], operands: list[int],
               results: tuple[Value, ...], depth: int, stack: str) -> Instruction:  # fmt: skip
        counts = [self.expressions.read(texts.get(name, "0")) for name in ("cond_nconsts", "body_nconsts")]
        first, second = (count if isinstance(count, int) else 0 for count in counts)
        fixed, inner = operands[:first], operands[first : first + second]
        regions = (self._jaxpr(spans["cond_jaxpr"][0], fixed, depth), self._jaxpr(spans["body_jaxpr"][0], inner, depth))
        inside: dict[str, object] = {"inside": _inside(stack, "while")}
        return Instruction("while", "while", tuple(operands[first + second :]), results, inside, regions, stack)

    def _branches(self, span: tuple[int, int], depth: int) -> tuple[Region, ...]:
        regions: list[Region] = []
        at = span[0] + 1
        while at < self.tokens.mates[span[0]]:
            if self.tokens.word(at) != ",":
                regions.append(self._jaxpr(at, (), depth))
            at = self.tokens.after(at)
        if not regions:
            raise Unclear("a cond without branches")
        return tuple(regions)


def _inside(stack: str, loop: str) -> str:
    return f"{stack}/{loop}" if stack else loop
