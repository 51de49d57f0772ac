"""What a store can be asked to change."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def submitted() -> set[str]:
    """The names of all changes that a store asks its writer for."""
    return _named_in("write", "audited", "self._writer.submit")


def audited() -> set[str]:
    """Those that the audit has rows of."""
    return _named_in("audited")


def _named_in(*functions: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse((ROOT / "executor" / "kernel" / "store" / "topics" / "store.py").read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in functions:
            names.add(ast.unparse(node.args[0]).rpartition(".")[2])
    return names - {"_writes"}  # of a ping: it leaves nothing
