"""The Python source of a document. Executed, it makes the same document: `workflow.document()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compiler.builder.recover import canonical, recover
from compiler.builder.text import Module

__all__ = ["canonical", "source"]


def source(document: Mapping[str, Any]) -> str:
    """Return the Python source of a document in the format weft/1 that can be compiled. Sequences, branches and
    containers are written as such; blocks that are connected otherwise, with their connections. The order of
    connections may change."""
    module = Module()
    workflow = module.write(recover(document), before=len("workflow = "))
    names = ", ".join(sorted(module.names, key=str.lower) + (["ref"] if module.uses_ref else []))
    imports = f"from weft import {names}"
    if len(imports) > 100:
        lines = "".join(f"    {name},\n" for name in names.split(", "))
        imports = f"from weft import (\n{lines})"
    return f"{imports}\n\n{module.constants}workflow = {workflow}\n"
