"""Workflows that a Python file defines: objects with a method `document()`, and the value called `workflow`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from compiler.builder.errors import BuildError
from compiler.builder.step import Step
from compiler.builder.workflow import as_workflow

USUAL: Final = "workflow"


def defined_in(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the workflows among the names of a module: values with a `document()`, each once, in the order of the
    file; if there are none, the value called `workflow`. A name that begins with `_` is for the file alone."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, value in names.items():
        is_one = not isinstance(value, type) and callable(getattr(value, "document", None))
        if is_one and not name.startswith("_") and id(value) not in seen:
            seen.add(id(value))
            found[name] = value
    if not found and USUAL in names:
        found[USUAL] = names[USUAL]
    return found


def document_of(value: Any, name: str) -> dict[str, Any]:
    """Return the document of a workflow, a tree of steps, or a function without arguments that returns either. `name`
    is used if it has none. Raises BuildError, and any error of the function."""
    if not hasattr(value, "document") and not isinstance(value, Step) and callable(value):
        value = value()
    if isinstance(value, Step | list):
        value = as_workflow(value, name)
    document = value.document() if callable(getattr(value, "document", None)) else value
    if not isinstance(document, dict):
        raise BuildError(f"This is not a workflow: its type is {type(value).__name__}.")
    return document if document.get("name") else {**document, "name": name}
