"""Workflow variables: the paths that name places in them, and the five ways to change one.

Path: `$` then any number of `.name`, `[n]` and `["k"]`; nothing else (no wildcards, filters or slices). One parser
serves `{"$ref": ...}`, `assign` and the `variables` block. Patches of one step are applied together or not at all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from executor.errors import BlockError
from executor.kernel.values.payload import MISSING, encode

PATH_MAX: Final = 64
OPS: Final = ("set", "merge", "del", "append", "increment")

_PART = re.compile(r"""\.(\w[\w-]*)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]""")
_Undo = Callable[[], None]


def parse_path(text: str) -> tuple[str | int, ...]:
    """`$.hit.body[0]["odd key"]` -> ("hit", "body", 0, "odd key"); `$` -> (). Raises BlockError(path_invalid)."""
    if not isinstance(text, str) or not text.startswith("$"):
        raise _path_error(text, "it must start with $")
    parts: list[str | int] = []
    at = 1
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            raise _path_error(text, f'expected .name, [n] or ["k"] at {text[at : at + 20]!r}')
        name, index, key = match.groups()
        try:
            parts.append(int(index) if index is not None else name if name is not None else str(orjson.loads(key)))
        except orjson.JSONDecodeError as error:
            raise _path_error(text, f"{key} is not a JSON string") from error
        at = match.end()
        if len(parts) > PATH_MAX:
            raise _path_error(text, f"it has more than {PATH_MAX} parts")
    return tuple(parts)


def read(root: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        if isinstance(root, dict):
            root = root.get(part if isinstance(part, str) else str(part), MISSING)
        elif isinstance(root, list):
            index = int(part) if isinstance(part, str) and part.isdecimal() else part
            root = root[index] if isinstance(index, int) and index < len(root) else MISSING
        else:
            return MISSING
    return root


def apply(variables: dict[str, Any], ops: Sequence[Sequence[Any]]) -> None:
    """Apply patches `[op, path, value]` in order, in place, all or none. Raises BlockError: path_invalid, patch_failed,
    payload_invalid. set and append make what is missing on the way; merge is shallow; increment is by 1 if the value is
    null."""
    undo: list[_Undo] = []
    try:
        for op, text, value in ops:
            path = parse_path(text)
            if not path or not isinstance(path[0], str):
                raise _path_error(text, "the name of a variable is missing")
            undo += _apply_one(variables, op, text, path, orjson.loads(encode(value)))
    except BaseException:
        for step in reversed(undo):
            step()
        raise


def _apply_one(variables: dict[str, Any], op: str, text: str, path: tuple[str | int, ...], value: Any) -> list[_Undo]:
    old = read(variables, path)
    match op:
        case "set":
            return _put(variables, text, path, value)
        case "del":
            return [] if old is MISSING else _delete(variables, path)
        case "merge":
            if not isinstance(value, dict):
                raise _failed(op, text, f"the value is {_kind(value)}, not an object")
            if old is MISSING or old is None:
                return _put(variables, text, path, value)
            if not isinstance(old, dict):
                raise _failed(op, text, f"it holds {_kind(old)}, not an object")
            before = dict(old)
            old.update(value)
            return [lambda: _restore(old, before)]
        case "append":
            if old is MISSING or old is None:
                return _put(variables, text, path, [value])
            if not isinstance(old, list):
                raise _failed(op, text, f"it holds {_kind(old)}, not a list")
            old.append(value)
            return [lambda: _void(old.pop())]
        case "increment":
            step = 1 if value is None else value
            start = 0 if old is MISSING or old is None else old
            return _put(variables, text, path, add(text, start, step))
        case _:
            raise _failed(op, text, f"unknown operation; the operations are {', '.join(OPS)}")


def add(text: str, start: Any, step: Any) -> int | float:
    """Return the sum that `increment` makes. Raises BlockError(patch_failed)."""
    for number, what in ((start, "it holds"), (step, "the value is")):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise _failed("increment", text, f"{what} {_kind(number)}, not a number")
    total: int | float = start + step
    if not math.isfinite(total) or abs(total) >= 2**63:
        raise _failed("increment", text, "the result is out of range")
    return total


def _put(variables: dict[str, Any], text: str, path: tuple[str | int, ...], value: Any) -> list[_Undo]:
    """Set, making objects, and lists where the next part is an index, on the way."""
    at: Any = variables
    depth = 0
    while depth < len(path) - 1:
        below = read(at, path[depth : depth + 1])
        if below is MISSING or below is None:
            break
        at, depth = below, depth + 1
    for part in reversed(path[depth + 1 :]):
        if isinstance(part, int) and part != 0:
            raise _failed("set", text, f"there is no list with {part} items")
        value = {part: value} if isinstance(part, str) else [value]
    part = path[depth]
    if isinstance(at, dict):
        key = str(part)
        old = at.get(key, MISSING)
        at[key] = value
        return [lambda: _void(at.pop(key)) if old is MISSING else at.__setitem__(key, old)]
    if isinstance(at, list):
        index = int(part) if isinstance(part, str) and part.isdecimal() else part
        if not isinstance(index, int):
            raise _failed("set", text, f"a list has no field {part!r}")
        if index > len(at):
            raise _failed("set", text, f"index {index} is past the end of a list of {len(at)}")
        if index == len(at):
            at.append(value)
            return [lambda: _void(at.pop())]
        old, at[index] = at[index], value
        return [lambda: at.__setitem__(index, old)]
    raise _failed("set", text, f"{_kind(at)} has no field {part!r}")


def _delete(variables: dict[str, Any], path: tuple[str | int, ...]) -> list[_Undo]:
    parent = read(variables, path[:-1])
    part = path[-1]
    if isinstance(parent, dict):
        before = dict(parent)
        del parent[part if isinstance(part, str) else str(part)]
        return [lambda: _restore(parent, before)]
    index = int(part)
    old = parent.pop(index)
    return [lambda: parent.insert(index, old)]


def _restore(at: dict[str, Any], before: dict[str, Any]) -> None:
    at.clear()
    at.update(before)


def _void(_: object) -> None:
    return None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "a value")


def _path_error(text: Any, why: str) -> BlockError:
    return BlockError(f"{text!r} is not a variable path: {why}", code="path_invalid", retryable=False)


def _failed(op: str, text: str, why: str) -> BlockError:
    return BlockError(f"cannot {op} {text}: {why}", code="patch_failed", retryable=False)
