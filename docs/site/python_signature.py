"""Signatures of functions as blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import griffe
from griffe import ParameterKind

LINE_MAX: Final = 100
_STARS: Final = {ParameterKind.var_positional: "*", ParameterKind.var_keyword: "**"}
_OPENED: Final = re.compile(r"(Async)?(?:Generator|Iterator)\[(.*?)(?:, None)*\]")


def signature(function: griffe.Function, called: str, *, drop_self: bool = False) -> str:
    """Return a block of code with one line, or with a line for each parameter."""
    parts = list(_parts(list(function.parameters)[1 if drop_self else 0 :]))
    opens = any(re.search("opening|contextmanager", str(one.value)) for one in function.decorators)
    before = "async " if "async" in function.labels and not opens else ""
    returns = "" if called.startswith("class ") else _returned(function, opens)
    line = f"{before}{called}({', '.join(parts)}){returns}"
    if len(line) > LINE_MAX:
        line = f"{before}{called}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"
    return f"```python\n{line}\n```\n"


def bare(text: str) -> str:
    """Return an annotation without what only the builder needs, in one kind of quotes."""
    return text.replace(" | UnsetType", "").replace("'", '"')


def _parts(parameters: Iterable[griffe.Parameter]) -> Iterator[str]:
    before: ParameterKind | None = None
    for one in parameters:
        assert one.kind is not None
        if before is ParameterKind.positional_only and one.kind is not before:
            yield "/"
        if one.kind is ParameterKind.keyword_only and before not in (one.kind, ParameterKind.var_positional):
            yield "*"
        before = one.kind
        text = _STARS.get(one.kind, "") + one.name + (f": {bare(str(one.annotation))}" if one.annotation else "")
        if one.default is not None and one.kind not in _STARS:
            text += f" = {bare(str(one.default))}" if one.annotation else f"={bare(str(one.default))}"
        yield text
    if before is ParameterKind.positional_only:
        yield "/"


def _returned(function: griffe.Function, opens: bool) -> str:
    if function.returns is None:
        return ""
    text = re.sub(r"^Call\[(.*)\]$", r"\1", bare(str(function.returns)))  # methods of clients describe a call
    if opens:
        text = _OPENED.sub(r"\1ContextManager[\2]", text)
    return f" -> {text}"
