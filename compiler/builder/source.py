"""The Python source of a document. Executed, it makes the same document: `workflow.document()`. Calls and JSON values
are on one line if they fit, else an argument a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from compiler.builder.errors import BuildError
from compiler.builder.recover import Call, recover
from compiler.builder.step import ref

_WIDTH: Final = 100
_INDENT: Final = "    "
_INLINE_MAX: Final = 60  # characters of a text of two lines that stays where it is
_TRIPLE: Final = '"""'


def source(document: Mapping[str, Any]) -> str:
    """Return the Python source of a document in the format weft/1 that can be compiled. Sequences, branches and
    containers are written as such; blocks that are connected otherwise, with their connections. The order of
    connections may change."""
    module = _Module()
    workflow = module.write(recover(document), before=len("workflow = "))
    names = ", ".join(sorted(module.names, key=str.lower) + (["ref"] if module.uses_ref else []))
    imports = f"from weft.draw import {names}"
    if len(imports) > 100:
        lines = "".join(f"    {name},\n" for name in names.split(", "))
        imports = f"from weft.draw import (\n{lines})"
    return f"{imports}\n\n{module.constants}workflow = {workflow}\n"


class _Module:
    """The text of a module while it is written: texts of several lines become constants above what uses them."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.uses_ref = False
        self._constants: dict[str, str] = {}

    @property
    def constants(self) -> str:
        return "".join(f"{name} = {text}\n\n" for text, name in self._constants.items())

    def write(self, value: Any, indent: int = 0, before: int = 0, hint: str = "text") -> str:
        """`before`: characters that stand on the line already. `hint`: what a constant is called after."""
        flat = self._flat(value, hint)
        if "\n" not in flat and indent * len(_INDENT) + before + len(flat) <= _WIDTH:
            return flat
        return self._laid_out(value, indent, hint)

    def _flat(self, value: Any, hint: str) -> str:
        return self._parts(value, hint, lambda one, before, called: self._flat(one, called))(", ", "", "")

    def _laid_out(self, value: Any, indent: int, hint: str) -> str:
        inner = _INDENT * (indent + 1)
        parts = self._parts(value, hint, lambda one, before, called: self.write(one, indent + 1, before + 1, called))
        return parts(f",\n{inner}", f"\n{inner}", f",\n{_INDENT * indent}")

    def _parts(self, value: Any, hint: str, write: Callable[[Any, int, str], str]) -> Callable[[str, str, str], str]:
        match value:
            case Call():
                self.names.add(value.cls.__name__)
                own = str(value.kwargs.get("id", hint))
                items = [write(one, 0, own) for one in value.args]
                for key, one in value.kwargs.items():
                    called = own if isinstance(one, Call) else f"{own}_{key}"
                    items.append(f"{key}={write(one, len(key) + 1, called)}")
                opens, closes = f"{value.cls.__name__}(", ")"
            case dict() if _is_ref(value):
                self.uses_ref = True
                items, opens, closes = [_quoted(value["$ref"])], "ref(", ")"
                return lambda between, first, last: f"{opens}{items[0]}{closes}"
            case dict():
                keys = {key: _quoted(key) for key in value}
                items = [
                    f"{keys[key]}: {write(one, len(keys[key]) + 2, f'{hint}_{key}')}" for key, one in value.items()
                ]
                opens, closes = "{", "}"
            case list():
                items = [write(one, 0, hint) for one in value]
                opens, closes = "[", "]"
            case _:
                text = self._text(value, hint) if isinstance(value, str) else repr(value)
                return lambda between, first, last: text
        if not items:
            return lambda between, first, last: opens + closes
        return lambda between, first, last: f"{opens}{first}{between.join(items)}{last}{closes}"

    def _text(self, text: str, hint: str) -> str:
        if "\n" not in text or (len(text) <= _INLINE_MAX and text.count("\n") == 1) or not _is_shown(text):
            return _quoted(text)
        literal = _several_lines(text)
        if literal not in self._constants:
            stem = re.sub(r"[^A-Za-z0-9]+", "_", hint).strip("_").upper() or "TEXT"
            stem = f"TEXT_{stem}" if stem[0].isdigit() else stem
            name, number = stem, 1
            while name in self._constants.values():
                number += 1
                name = f"{stem}_{number}"
            self._constants[literal] = name
        return self._constants[literal]


def _is_ref(value: dict[str, Any]) -> bool:
    if len(value) != 1 or not isinstance(value.get("$ref"), str):
        return False
    try:
        ref(value["$ref"])
    except BuildError:
        return False
    return True


def _is_shown(text: str) -> bool:
    """Nothing in it that an editor hides or changes."""
    return all(one.isprintable() or one in "\n\t" for one in text)


def _quoted(text: str) -> str:
    if not _is_shown(text):
        return repr(text)
    if '"' in text and not set(text) & set("'\\\n\t"):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)


def _several_lines(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(_TRIPLE, '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = f'{escaped[:-1]}\\"'
    return f"{_TRIPLE}\\\n{escaped}{_TRIPLE}"
