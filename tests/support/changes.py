"""What the SQLite store can be asked to change."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def submitted() -> set[str]:
    """The names of all changes that the SQLite store asks its writer for."""
    names = set()
    for node in ast.walk(ast.parse((ROOT / "executor" / "store" / "sqlite" / "store.py").read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("write", "self._writer.submit"):
            names.add(ast.unparse(node.args[0]).rpartition(".")[2])
    return names
