"""Values of params: plain JSON, and `ref("$.hit.body")`, which reads a workflow variable when the block runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from compiler.builder.errors import BuildError
from compiler.document import JSON_DEPTH_MAX
from compiler.references import escape

_FIRST: Final = r"""(?:\.[^.\[\]\s"<>]+|\["[^"\\<>\n]+"\])"""
_PATH: Final = re.compile(rf"""\${_FIRST}(?:{_FIRST}|\[\d{{1,9}}\])*""")


@dataclass(frozen=True, slots=True)
class Ref:
    """A workflow variable, or a part of one. As a param of its own it keeps the type of the value; inside a text,
    `f"Got {ref('$.hit.body')}"`, it is the reference `<workflow.hit.body>`."""

    path: str

    def __str__(self) -> str:
        return f"<workflow{self.path[1:]}>"


def ref(path: str) -> Ref:
    """`path` is `$.name`, `$.name.field[0]` or `$["odd name"]`. Raises BuildError."""
    if not isinstance(path, str) or _PATH.fullmatch(path) is None:
        raise BuildError(
            f"ref({path!r}): this is not a path.",
            'Write "$.name" or "$.name.field[0]"; the output of a block is read by a text: "<block.field>".',
        )
    return Ref(path)


def plain(value: Any, where: str) -> Any:
    """`value` as JSON values alone, copied. `where` begins the message, a pointer follows it. Raises BuildError."""
    return _plain(value, where, "", JSON_DEPTH_MAX)


def _plain(value: Any, where: str, pointer: str, depth: int) -> Any:
    if depth == 0:
        raise BuildError(f"{where}{pointer} is nested deeper than {JSON_DEPTH_MAX} levels.")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isfinite(value):
                return value
            raise BuildError(f"{where}{pointer} is {value}, which JSON does not have.")
        case Ref():
            return {"$ref": value.path}
        case Mapping():
            return {
                _key(key, where, pointer): _plain(item, where, f"{pointer}/{escape(str(key))}", depth - 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_plain(item, where, f"{pointer}/{index}", depth - 1) for index, item in enumerate(value)]
        case _:
            raise BuildError(
                f"{where}{pointer} is of type {type(value).__name__}, which JSON does not have.",
                "Use texts, numbers, true, false, null, lists and objects; a block computes what depends on the run.",
            )


def _key(key: Any, where: str, pointer: str) -> str:
    if isinstance(key, str):
        return key
    raise BuildError(f"{where}{pointer} has the key {key!r}, and keys of JSON are texts.", f'Write "{key}".')
