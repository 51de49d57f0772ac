"""The page of the public names of `weft`: signatures and docstrings as they are in the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import weft

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_CALL = re.compile(r"-> Call\[(.*)\]$")  # methods of clients describe a call, and return its answer
_QUOTED = re.compile(r"""(: |-> )(["'])(.*?)\2(?=,| =|\)|$)""")  # annotations are texts in modules that postpone them


def names() -> Iterator[str]:
    yield "# Names of `weft`\n"
    yield "What `import weft` offers, with the texts of the code.\n"
    for name in weft.__all__:
        value = getattr(weft, name)
        yield f"## {name}\n"
        yield from (_module(value) if isinstance(value, ModuleType) else _one(f"weft.{name}", value))


def _module(module: ModuleType) -> Iterator[str]:
    yield from _text(module)
    for name in getattr(module, "__all__", ()):
        yield f"### {name}\n"
        yield from _one(f"{module.__name__}.{name}", getattr(module, name))


def _one(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value) or callable(value):
        yield f"```python\n{'class ' if inspect.isclass(value) else ''}{name}{_signature(value)}\n```\n"
    yield from _text(value)
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for method, function in inspect.getmembers(value, inspect.isroutine):
            if not method.startswith("_") and inspect.getdoc(function) and _own(value, method):
                yield f"- `{method}{_signature(function)}`: {_first(function)}"
        yield ""


def _own(cls: type, method: str) -> bool:
    """Whether a class of weft has it, and not one of a library."""
    owner = next((base for base in cls.__mro__ if method in vars(base)), cls)
    return owner.__module__.partition(".")[0] in ("compiler", "executor", "server", "weft")


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(…)"
    text = _QUOTED.sub(r"\1\3", _ADDRESS.sub("", text)).replace("(self, ", "(").replace("(self)", "()")
    text = _CALL.sub(r"-> \1", text)
    if inspect.isclass(value):
        text = text.removesuffix(" -> None")
    return text if len(text) < 400 else "(…)"


def _text(value: Any) -> Iterator[str]:
    text = inspect.getdoc(value)
    if text:
        yield f"```text\n{text}\n```\n" if "  " in text else f"{_plain(text)}\n"


def _first(value: Any) -> str:
    return _plain((inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " "))


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")
