"""From a node's params and the values of a run to what its handler gets. One pass: what was put in is never looked at
again.

A text that is exactly one reference becomes the value itself; in a longer text values are rendered; a text that is
JavaScript becomes Bound, with its references as values beside it; `{"$ref": "$.a.b"}` reads a workflow variable.
Compiled once per plan node, so that filling touches only the places that change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from compiler import javascript, python
from compiler.catalog import BlockSpec
from compiler.keys import Path
from compiler.plan import Node, Ref
from compiler.references import ENV, escape, find, texts
from compiler.schema import checker_of, is_python
from executor.errors import BlockError
from executor.kernel.values import variables as paths
from executor.kernel.values.coerce import literal
from executor.kernel.values.payload import MISSING, SIZE_MAX_BYTES, Bound, render, trimmed
from executor.kernel.values.scope import Values

_Place = tuple[str | int, ...]
# Params that an end sentinel does not need: a list of 10,000 items must not be copied 10,000 times.
_SETTLED_AT_START: Final = ("items", "count")


def compile_template(node: Node, marked: Collection[str] = ()) -> Template:
    """Compile the params of a node. Texts at `marked` places (`/to`) arrive as Filled. Raises BlockError(path_invalid)
    for a `{"$ref"}` that the compiler would refuse."""
    skip, cache, limit = node.policy.skip_if, node.policy.cache, node.policy.limit
    params = orjson.loads(bytes(node.params))
    if not isinstance(params, dict):
        params = {}
    if node.sentinel == "end":
        params = {key: value for key, value in params.items() if key not in _SETTLED_AT_START}
    if not (params or skip or cache or limit):
        return _EMPTY
    known = {ref.text: ref for ref in node.needs}
    slots = tuple(_slots(params, known, frozenset(node.code), frozenset(node.literal), frozenset(marked)))
    return Template(
        trimmed(orjson.dumps(params)),
        slots,
        _Code(skip, known) if skip else None,
        _Code(cache.key, known) if cache is not None and cache.key else None,
        "" if limit is None else _slot(limit.key, known, False) or limit.key,
    )


class Template:
    """The params of one plan node. Holds no values: one Template serves every run of the plan."""

    __slots__ = ("_cache_key", "_limit_key", "_params", "_skip", "_slots")

    def __init__(
        self,
        params: bytes,
        slots: Sequence[tuple[_Place, _Slot]],
        skip: _Code | None,
        cache_key: _Code | None,
        limit_key: str | _Whole | _Text | _Code,
    ) -> None:
        self._params = params
        self._slots = slots
        self._skip = skip
        self._cache_key = cache_key
        self._limit_key = limit_key

    def fill(self, values: Values, path: Path) -> dict[str, Any]:
        """Return the params for a run of the node in scope `path`; the caller may change them. Raises BlockError:
        reference_failed, payload_too_large."""
        params: dict[str, Any] = orjson.loads(self._params)
        room = _Room()
        for place, slot in self._slots:
            at: Any = params
            for part in place[:-1]:
                at = at[part]
            at[place[-1]] = slot.fill(values, path, room)
        return params

    def skip_if(self, values: Values, path: Path) -> Bound | None:
        return self._skip.fill(values, path, _Room()) if self._skip is not None else None

    def cache_key(self, values: Values, path: Path) -> Bound | None:
        """Return the key of the policy's cache with its references bound, or None if the params are the key."""
        return self._cache_key.fill(values, path, _Room()) if self._cache_key is not None else None

    def limit_key(self, values: Values, path: Path) -> str:
        key = self._limit_key
        filled = key if isinstance(key, str) else key.fill(values, path, _Room())
        return filled if isinstance(filled, str) else render(filled)


_EMPTY: Final = Template(b"{}", (), None, None, "")  # of all nodes without params


class _Room:
    """The bytes that the references of one fill may still put in. They are counted while they are filled: a list of
    references to one large value could take gigabytes."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = SIZE_MAX_BYTES

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise BlockError(
                f"the parameters have more than {SIZE_MAX_BYTES} bytes after their references were resolved",
                code="payload_too_large",
                retryable=False,
                hint="reference the fields that the block needs instead of whole outputs",
            )

    def copy(self, value: Any) -> Any:
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, (dict, list)):
            data = orjson.dumps(value)
            self.spend(len(data))
            return orjson.loads(data)
        return value


class _Whole:
    __slots__ = ("_ref", "_text")

    def __init__(self, ref: Ref, text: str) -> None:
        self._ref = ref
        self._text = text

    @property
    def is_env(self) -> bool:
        return self._ref.kind == "env"

    def fill(self, values: Values, path: Path, room: _Room) -> Any:
        value = values.lookup(self._ref, path)
        if value is MISSING:
            return self._text if self._ref.kind == "env" else None
        return room.copy(value)


class _Text:
    __slots__ = ("_parts",)

    def __init__(self, parts: list[str | tuple[Ref, str]]) -> None:
        self._parts = parts

    def fill(self, values: Values, path: Path, room: _Room) -> str:
        return str(self.filled(values, path, room))

    def filled(self, values: Values, path: Path, room: _Room) -> Filled:
        text, data = "", []
        for part in self._parts:
            added = part if isinstance(part, str) else _rendered(values.lookup(part[0], path), part[0], part[1])
            room.spend(len(added))
            if not isinstance(part, str) and part[0].kind != "env":
                data.append((len(text), len(text) + len(added)))
            text += added
        return Filled(text, tuple(data))


class _Code:
    """JavaScript or Python: the references are taken out of the source and handed over as values."""

    __slots__ = ("_source", "_texts", "_values")

    def __init__(self, source: str, known: Mapping[str, Ref], in_python: bool = False) -> None:
        rewritten = (python if in_python else javascript).rewrite(source, known)
        self._source = rewritten.source
        self._values = [(key, known[key]) for key in rewritten.values]
        self._texts = [(key, known[key]) for key in rewritten.texts]

    def fill(self, values: Values, path: Path, room: _Room) -> Bound:
        """Values are not measured here: the sandbox does that while it encodes them."""
        texts: dict[str, str] = {}
        for key, ref in self._texts:
            texts[key] = _rendered(values.lookup(ref, path), ref, key)
            room.spend(len(texts[key]))
        return Bound(self._source, {key: _bound(values.lookup(ref, path), ref) for key, ref in self._values}, texts)


class _Variable:
    __slots__ = ("_path",)

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self._path = path

    def fill(self, values: Values, path: Path, room: _Room) -> Any:
        value = paths.read(values.variables, self._path)
        return None if value is MISSING else room.copy(value)


class _Marked:
    """A whole value, or a text with references in it: text comes as Filled. What the operator set is not data."""

    __slots__ = ("_slot",)

    def __init__(self, slot: _Whole | _Text | _Variable) -> None:
        self._slot = slot

    def fill(self, values: Values, path: Path, room: _Room) -> Any:
        slot = self._slot
        if isinstance(slot, _Text):
            return slot.filled(values, path, room)
        value = slot.fill(values, path, room)
        is_data = isinstance(value, str) and not (isinstance(slot, _Whole) and slot.is_env)
        return Filled(value, ((0, len(value)),)) if is_data else value


_Slot = _Whole | _Text | _Code | _Variable | _Marked


def _slots(
    params: dict[str, Any],
    known: Mapping[str, Ref],
    code: Collection[str],
    literal: Collection[str],
    marked: Collection[str],
) -> Iterator[tuple[_Place, _Slot]]:
    stack: list[tuple[_Place, str, Any, bool]] = [((), "", params, False)]
    while stack:
        place, pointer, value, in_python = stack.pop()
        if pointer in literal:
            continue
        if isinstance(value, str):
            slot = _slot(value, known, pointer in code, in_python)
            if slot is not None:
                yield place, _Marked(slot) if pointer in marked and not isinstance(slot, _Code) else slot
        elif isinstance(value, dict):
            if place and len(value) == 1 and _is_variable(value.get("$ref")):
                variable = _Variable(paths.parse_path(value["$ref"]))
                yield place, _Marked(variable) if pointer in marked else variable
            else:
                beside = is_python(value)
                for key in reversed(value):
                    stack.append(((*place, key), f"{pointer}/{escape(key)}", value[key], beside))
        elif isinstance(value, list):
            stack.extend(((*place, n), f"{pointer}/{n}", value[n], False) for n in range(len(value) - 1, -1, -1))


def _is_variable(text: Any) -> bool:
    """JSON Schemas use `$ref` too, for `#/...` and addresses."""
    return isinstance(text, str) and (text == "$" or text.startswith(("$.", "$[")))


def _slot(text: str, known: Mapping[str, Ref], is_code: bool, in_python: bool = False) -> _Whole | _Text | _Code | None:
    if is_code:  # an empty expression is no expression: the handler sees ''
        return _Code(text, known, in_python) if text.strip() else None
    found = [f for f in find(text) if f.key in known]
    if not found:
        return None
    if len(found) == 1 and found[0].start == 0 and found[0].end == len(text):
        return _Whole(known[found[0].key], text)
    parts: list[str | tuple[Ref, str]] = []
    at = 0
    for f in found:
        if f.start > at:
            parts.append(text[at : f.start])
        parts.append((known[f.key], text[f.start : f.end]))
        at = f.end
    if at < len(text):
        parts.append(text[at:])
    return _Text(parts)


def _rendered(value: Any, ref: Ref, text: str) -> str:
    return text if value is MISSING and ref.kind == "env" else render(value)


def _bound(value: Any, ref: Ref) -> Any:
    """Return a value for code: None if it is missing, and the number or boolean that an environment text spells."""
    if value is MISSING:
        return None
    return literal(value) if ref.kind == "env" and isinstance(value, str) else value


class Filled(str):
    """Text that remembers which parts of it, (start, end) in `data`, came from references: for params whose text has a
    syntax, such as a list with commas, of which a comma in a name is no part."""

    __slots__ = ("data",)
    data: tuple[tuple[int, int], ...]

    def __new__(cls, text: str, data: tuple[tuple[int, int], ...]) -> Filled:
        made = super().__new__(cls, text)
        made.data = data
        return made


def written(text: str) -> list[bool]:
    """For each character: did the author write it? Plain text counts as written."""
    by_author = [True] * len(text)
    for start, end in text.data if isinstance(text, Filled) else ():
        by_author[start:end] = [False] * (end - start)
    return by_author


def environment_names(node: Node) -> tuple[str, ...]:
    return tuple(sorted({str(ref.path[0]) for ref in node.needs if ref.kind == "env"}))


def names_elsewhere(node: Node, spec: BlockSpec) -> frozenset[str]:
    params: Any = orjson.loads(bytes(node.params))
    params = params if isinstance(params, dict) else {}
    permitted = checker_of(spec).secret_places(params)
    found = {name for pointer, text, _ in texts(params, ()) if pointer not in permitted for name in ENV.findall(text)}
    policy = node.policy
    for text in (policy.skip_if, policy.cache and policy.cache.key, policy.limit and policy.limit.key):
        found.update(ENV.findall(text) if text else ())
    return frozenset(found) & frozenset(environment_names(node))
