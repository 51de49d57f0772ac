"""Placeholder values: what calls return while a workflow function is traced.

Attribute and index access gives a reference (`a.items[0].title` is `<a.items[0].title>`), comparison a condition. What
needs the value itself (`if`, `for`, `len`, arithmetic) is refused with the line and what to write instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from compiler.builder.errors import DefinitionError
from compiler.diagnostics import suggest

if TYPE_CHECKING:
    from compiler.tracing.graph import Node, Scope

_NAME = re.compile(r"[^\W\d]\w*")
_FIELD = re.compile(r"[\w$@][\w$@ -]*")  # as compiler.bind
_EXACT = 2**53
# The references that texts got by f-strings, in the trace under way.
written: ContextVar[set[str] | None] = ContextVar("weft_written", default=None)

# The way out of all that cannot be drawn.
DURABLE: Final = "or make the function @weft.durable: its Python runs as it is"
_TRUTH = (
    "a traced value has no truth value: it is known only when a run executes the workflow. Instead of `if` and `while` "
    "write weft.when(...), instead of `and`, `or`, `not` write &, | and ~ with parentheses, decide inside a step, "
    f"{DURABLE}."
)
_ITERATE = (
    f"a traced value cannot be iterated: its length is not known yet. Write weft.each(items, function), {DURABLE}."
)
_HASH = "a traced value cannot be a key or in a set: it is not known yet."
_COMPUTE = (
    f"a traced value cannot be computed with: it is not known yet. Compute inside a step and use its result, {DURABLE}."
)


def _refusing(message: str) -> Callable[..., Any]:
    def refused(*_: Any) -> Any:
        raise DefinitionError(message)

    return refused


def _comparing(operator: str) -> Callable[[Traced, Any], Condition]:
    return lambda self, other: Condition.compare(self, operator, other)


class Traced:
    """A value of `node`, or inside the body of container `node`. `scope` is where it can be used."""

    __slots__ = ("_node", "_path", "_schema", "_scope")
    _node: Node
    _scope: Scope
    _path: tuple[str | int, ...]
    _schema: dict[str, Any] | None

    def __init__(self, node: Node, scope: Scope, path: tuple[str | int, ...] = (), schema: Any = None) -> None:
        object.__setattr__(self, "_node", node)
        object.__setattr__(self, "_scope", scope)
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_schema", schema)

    def __getattr__(self, name: str) -> Traced:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, part: Any) -> Traced:
        if isinstance(part, bool) or not isinstance(part, str | int):
            raise DefinitionError("a traced value is read by a field name or a position. For more, write a step.")
        if isinstance(part, int) and part < 0:
            raise DefinitionError(
                f"position {part} counts from the end, which is not known yet. Take it inside a step."
            )
        if isinstance(part, str) and not _FIELD.fullmatch(part):
            raise DefinitionError(f"no reference can name the field {part!r}. Pass the whole value to a step.")
        if (kind := kind_of(self._schema)) in ("number", "boolean"):
            raise DefinitionError(f"{reference(self)} is of type {kind}: it has no {part!r}.")
        try:
            schema = field_of(self._schema, part)
        except KeyError:
            hint = suggest(str(part), (self._schema or {})["properties"])
            raise DefinitionError(f"{reference(self)} has no field {part!r}.{' ' + hint if hint else ''}") from None
        return type(self)(self._node, self._scope, (*self._path, part), schema)

    def __format__(self, spec: str) -> str:
        if spec:
            raise DefinitionError(f"a traced value cannot be formatted with {spec!r}: format it inside a step.")
        return str(self)

    def __str__(self) -> str:
        text = reference(self)
        if (texts := written.get()) is not None:
            texts.add(text)
        return text

    def __repr__(self) -> str:
        return f"<traced {reference(self)}>"

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.compare(self, "==" if other is None else "===", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return Condition.compare(self, "!=" if other is None else "!==", other)

    __lt__, __le__, __gt__, __ge__ = (_comparing(operator) for operator in ("<", "<=", ">", ">="))

    def __and__(self, other: Any) -> Condition:
        return Condition.of(self).__and__(other)

    def __or__(self, other: Any) -> Condition:
        return Condition.of(self).__or__(other)

    def __invert__(self) -> Condition:
        return ~Condition.of(self)

    __hash__ = _refusing(_HASH)
    __await__ = _refusing("a traced value is awaited already: only the call that gave it is. Leave `await` out.")
    __bool__ = _refusing(_TRUTH)
    __iter__ = _refusing(_ITERATE)
    __len__ = _refusing("a traced value has no length yet. Count inside a step and use its result.")
    __contains__ = _refusing("`in` needs the value, which is not known yet. Look inside a step and use its result.")
    __setattr__ = __setitem__ = _refusing("a traced value cannot be changed. Return a new value from a step.")
    __int__ = __float__ = __index__ = __complex__ = __round__ = __neg__ = __pos__ = __abs__ = _refusing(_COMPUTE)
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refusing(_COMPUTE)
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = _refusing(_COMPUTE)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise DefinitionError(f"{reference(self)} is a value, not a function. Call its methods inside a step.")


class Answered(Traced):
    """The answer of a person, with the fields of `weft.Answer`: the block has those of the form beside its own."""

    __slots__ = ()

    def __getitem__(self, part: Any) -> Traced:
        if part == "fields":
            return Traced(self._node, self._scope)
        return Traced.__getitem__(self, "answered_by" if part == "by" else part)


class Perhaps(Traced):
    """Return the reference with which a cleanup reads a call of the body: null if that did not run."""

    __slots__ = ()


class Condition:
    """A JavaScript expression with references, for `weft.when`. `reads`: the values in it."""

    __slots__ = ("reads", "text")

    def __init__(self, text: str, reads: tuple[Traced, ...]) -> None:
        self.text = text
        self.reads = reads

    @classmethod
    def of(cls, value: Any) -> Condition:
        """Raises DefinitionError: it is a plain value."""
        if isinstance(value, Condition):
            return value
        if isinstance(value, Traced):
            return cls(reference(value), (value,))
        raise DefinitionError(f"{value!r} is known while the workflow is traced: use a plain `if` for it.")

    @classmethod
    def compare(cls, left: Traced, operator: str, right: Any) -> Condition:
        if isinstance(right, Traced):
            return cls(f"{reference(left)} {operator} {reference(right)}", (left, right))
        if isinstance(right, int) and abs(right) > _EXACT:
            raise DefinitionError(
                f"conditions keep whole numbers up to 2^53: compare {right} inside a step, or as text."
            )
        if right is None or isinstance(right, str | int | float):
            return cls(f"{reference(left)} {operator} {json.dumps(right, ensure_ascii=False)}", (left,))
        kind = type(right).__name__
        raise DefinitionError(f"a traced value is compared with a text, a number, a truth value or None, not a {kind}.")

    def __and__(self, other: Any) -> Condition:
        other = Condition.of(other)
        return Condition(f"({self.text}) && ({other.text})", (*self.reads, *other.reads))

    def __or__(self, other: Any) -> Condition:
        other = Condition.of(other)
        return Condition(f"({self.text}) || ({other.text})", (*self.reads, *other.reads))

    def __invert__(self) -> Condition:
        return Condition(f"!({self.text})", self.reads)

    def __bool__(self) -> bool:
        raise DefinitionError(_TRUTH)


def reference(value: Traced) -> str:
    """Return `<fetch.items[0].title>`, or `<when-value ?? null>` for a value that the compiler cannot rely on."""
    parts = [value._node.id]
    for part in value._path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(f".{part}" if _NAME.fullmatch(part) else f'["{part}"]')
    return f"<{''.join(parts)}{' ?? null' if value._node.joins or isinstance(value, Perhaps) else ''}>"


def kind_of(schema: Mapping[str, Any] | None) -> str:
    """Return the type of all values that fit, if it is a single one; integers are numbers."""
    found = (schema or {}).get("type")
    if not isinstance(found, str):
        return ""
    return "number" if found == "integer" else found


def field_of(schema: Mapping[str, Any] | None, part: str | int) -> dict[str, Any] | None:
    """Return the schema of a field or of an item, or None if nothing is known of it. Raises KeyError if there is no
    such field."""
    if not schema:
        return None
    if isinstance(part, int):
        items = schema.get("items")
        return items if isinstance(items, dict) else None
    fields, more = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(fields, dict):
        if part in fields:
            found = fields[part]
            return found if isinstance(found, dict) else None
        if more in (None, False):
            raise KeyError(part)
    return more if isinstance(more, dict) else None
