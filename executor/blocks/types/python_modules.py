"""Modules of workflows: files that `WEFT_FUNCTIONS`, `weft dev` and programs name, and the steps in them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from compiler.tracing.steps import Step, steps_in
from compiler.tracing.workflow import FunctionWorkflow, called_by


def load_module(place: str) -> ModuleType:
    """Import `flow.py`, `folder/flow.py`, or a module by name, `shop.flow`. A file is imported under its own name, and
    can import its neighbours, as when Python runs it. Raises ImportError, and the errors of the module."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if _file_of(known) == path:
            return known
        raise ImportError(f"a module {name!r} is already loaded ({_file_of(known) or 'built in'}); rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {place}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def steps_of(values: Iterable[Any]) -> dict[str, Step[Any, Any]]:
    """Return the steps among these, and those that workflows among these call, also in other workflows, by name. Raises
    ValueError, TraceError."""
    found = list(values)
    workflows = [value for value in found if isinstance(value, FunctionWorkflow)]
    for workflow in (*workflows, *called_by(workflows).values()):
        found += workflow.steps.values()
    return steps_in(found)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None
