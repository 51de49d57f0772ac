"""Names of a file: its imports, functions and globals, and those of the files of its package."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

Function = ast.FunctionDef | ast.AsyncFunctionDef
_OK: Final = re.compile(r"#\s*weft:\s*ok\s+([a-z_]+(?:\s*,\s*[a-z_]+)*)")
_STEP: Final = ("weft.step", "weft.workflow", "weft.durable")
_THROUGH_MAX: Final = 5  # imports of an imported name


class Module:
    """One file. `name`: by which others of its package import it."""

    def __init__(self, path: Path, name: str, package: Package, text: str, tree: ast.Module) -> None:
        self.path = path
        self.name = name
        self.package = package
        self.tree = tree
        self.imports = dict(self.imported(tree.body))
        self.functions = {one.name: one for one in tree.body if isinstance(one, Function)}
        self.globals = {name for one in tree.body for name in _assigned(one)}
        self._lines = text.splitlines()

    def full_name(self, name: str) -> str:
        """Return what a global name stands for: `os.path`, `shop.pricing.total`, `builtins.open`."""
        if name in self.imports:
            return self.imports[name]
        known = name in self.functions or name in self.globals or not hasattr(builtins, name)
        return f"{self.name}.{name}" if known else f"builtins.{name}"

    def imported(self, statements: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
        """Yield the names that these import, also inside of `if` and `try`, each with its full name."""
        for one in statements:
            if isinstance(one, ast.Import):
                for alias in one.names:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
            elif isinstance(one, ast.ImportFrom):
                around = self.name.split(".")
                kept = len(around) - one.level + (self.path.name == "__init__.py")
                base = [*(around[:kept] if one.level else ()), *([one.module] if one.module else ())]
                for alias in one.names:
                    yield alias.asname or alias.name, ".".join([*base, alias.name])
            elif isinstance(one, ast.If | ast.Try | ast.With):
                yield from self.imported(each for each in ast.iter_child_nodes(one) if isinstance(each, ast.stmt))

    def permits(self, code: str, first: int, last: int) -> bool:
        """Return True if one of these lines has `# weft: ok CODE`."""
        found = (_OK.search(line) for line in self._lines[first - 1 : last])
        return any(code in re.split(r"\s*,\s*", one[1]) for one in found if one is not None)


class Package:
    """The files that belong together: those of a package, or those beside a file that is in none."""

    def __init__(self, path: Path) -> None:
        root = path.resolve().parent
        while (root / "__init__.py").is_file():
            root = root.parent
        self._root = root
        inside = path.resolve().relative_to(root).parts
        self._top = inside[0] if len(inside) > 1 else None
        self._modules: dict[str, Module | None] = {}

    def at(self, path: Path) -> Module | None:
        """Return the module in a file of the package; None if it is no Python that can be read."""
        parts = path.resolve().relative_to(self._root).with_suffix("").parts
        return self.module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def function(self, name: str) -> tuple[Module, Function] | None:
        """Return a function of the package by its full name, also one that a module imports from another."""
        for _ in range(_THROUGH_MAX):
            place, _, own = name.rpartition(".")
            module = self.module(place) if place else None
            if module is None:
                return None
            if own in module.functions:
                return module, module.functions[own]
            if own not in module.imports:
                return None
            name = module.imports[own]
        return None

    def _read(self, name: str) -> Module | None:
        if self._top is not None and name.split(".")[0] != self._top:
            return None
        base = self._root.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                try:
                    text = path.read_text(encoding="utf-8")
                    return Module(path, name, self, text, ast.parse(text))
                except (OSError, SyntaxError, ValueError):
                    return None
        return None


def decorated(module: Module, function: Function, names: tuple[str, ...] = _STEP) -> bool:
    """Return True if a decorator of the function is one of these."""
    targets = (one.func if isinstance(one, ast.Call) else one for one in function.decorator_list)
    return any(dotted(target, module.imports, module) in names for target in targets)


def dotted(node: ast.AST, names: Mapping[str, str], module: Module) -> str | None:
    """Return the full name of `a.b.c`; None if it is no name. `names`: imports that count before those of the
    module."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    base = names.get(node.id) or module.full_name(node.id)
    return ".".join([base, *reversed(parts)])


def _assigned(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
