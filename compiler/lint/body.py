"""Reads one function that runs in a lane: what it does itself, and the functions of its package that it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from compiler.lint.modules import Function, Module, decorated, dotted
from compiler.lint.outside import of_call, of_method, of_value

_WEFT: Final = (
    "sleep until signal approve form callback call start gather first email http sql agent files continue_as_new"
)
_AWAITED: Final = {f"weft.{name}" for name in _WEFT.split()} | {"asyncio.sleep", "asyncio.gather", "asyncio.wait_for"}
_NESTED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_OF_ASKED: Final = {"answer", "refuse", "cancel"}
_NAMING: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
)  # fmt: skip
_AWAITS: Final = (ast.Await, ast.AsyncFor, ast.AsyncWith)
_IN_ORDER: Final = {"builtins.list", "builtins.tuple", "builtins.enumerate", "builtins.iter", "builtins.next"}
_OF_SETS: Final = {"union", "intersection", "difference", "symmetric_difference", "copy"}
_CHANGES: Final = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
    "setdefault", "update",
}  # fmt: skip
_MUTABLE: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)


class Found(Struct, frozen=True):
    code: str
    node: ast.AST
    message: str


class Body:
    """The code of a function, with the functions inside of it. `calls`: the functions of the package that it calls or
    passes on, with the place."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module = module
        self._function = function
        self._nodes = [one for part in function.body for one in ast.walk(part)]
        self._above = {inner: one for one in (function, *self._nodes) for inner in ast.iter_child_nodes(one)}
        self._imports = dict(module.imported([one for one in self._nodes if isinstance(one, ast.stmt)]))
        self._globals = {name for one in self._nodes if isinstance(one, ast.Global) for name in one.names}
        self._locals = set(self._bound()) - self._globals - set(self._imports)
        self._values = self._values_of_names()

    def found(self) -> Iterator[Found]:
        for one in self._nodes:
            if isinstance(one, ast.Call):
                yield from self._call(one)
            elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load):
                name = self._full(one)
                if name is not None and (wrong := of_value(name)) is not None:
                    yield Found(wrong[0], one, wrong[1])
            elif isinstance(one, ast.Try | ast.TryStar):
                yield from self._swallowed(one)
                yield from self._finally(one)
        yield from self._sets()
        yield from self._changes()
        yield from self._unawaited()

    def calls(self) -> Iterator[tuple[Module, Function, ast.AST]]:
        for one in self._nodes:
            if not isinstance(one, ast.Call):
                continue
            for target in (one.func, *one.args, *(each.value for each in one.keywords)):
                known = self._own(target)
                if known is not None and not decorated(*known):
                    yield *known, one

    # --- names ---

    def _bound(self) -> Iterator[str]:
        for one in (self._function, *self._nodes):
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
                yield one.id
            elif isinstance(one, ast.arg):
                yield one.arg
            elif isinstance(one, _NAMING) and one is not self._function and one.name:
                yield one.name
        yield from (one.arg for one in ast.walk(self._function.args) if isinstance(one, ast.arg))

    def _values_of_names(self) -> dict[str, list[ast.expr]]:
        """Return what is assigned to each name by itself."""
        found: dict[str, list[ast.expr]] = {}
        for one in (*self._module.tree.body, *self._nodes):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            value = one.value if isinstance(one, ast.Assign | ast.AnnAssign | ast.NamedExpr) else None
            for target in targets:
                if isinstance(target, ast.Name) and value is not None:
                    found.setdefault(target.id, []).append(value)
        return found

    def _full(self, node: ast.AST) -> str | None:
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name) or base.id in self._locals:
            return None
        return dotted(node, self._imports, self._module)

    def _own(self, node: ast.AST) -> tuple[Module, Function] | None:
        name = self._full(node)
        return None if name is None else self._module.package.function(name)

    def _is_path(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._is_path(node.left)
        if isinstance(node, ast.Call):
            return self._full(node.func) == "pathlib.Path"
        if isinstance(node, ast.Attribute):
            return node.attr == "parent" and self._is_path(node.value)
        name = node.id if isinstance(node, ast.Name) else ""
        kinds = [
            one.annotation for one in ast.walk(self._function.args) if isinstance(one, ast.arg) and one.arg == name
        ]
        if any(kind is not None and self._full(kind) == "pathlib.Path" for kind in kinds):
            return True
        return any(value is not node and self._is_path(value) for value in self._values.get(name, ()))

    # --- what it finds ---

    def _call(self, call: ast.Call) -> Iterator[Found]:
        name = self._full(call.func)
        wrong = of_call(name, call) if name is not None else None
        if wrong is None and isinstance(call.func, ast.Attribute):
            base = call.func.value
            is_path = self._is_path(base) or self._full(base) == "pathlib.Path"
            wrong = of_method(call.func.attr, of_path=is_path)
        if wrong is not None:
            yield Found(wrong[0], call, wrong[1])
        if name == "contextlib.suppress" and any(self._catches_all(one) for one in call.args):
            yield Found("durable_swallow", call, "`suppress(BaseException)` hides that the function leaves")

    def _catches_all(self, kind: ast.expr | None) -> bool:
        if isinstance(kind, ast.Tuple):
            return any(self._catches_all(one) for one in kind.elts)
        return kind is None or self._full(kind) == "builtins.BaseException"

    def _swallowed(self, node: ast.Try | ast.TryStar) -> Iterator[Found]:
        if not _has(node.body, _AWAITS):
            return
        for handler in node.handlers:
            if self._catches_all(handler.type) and not _has(handler.body, (ast.Raise,)):
                shown = "except:" if handler.type is None else f"except {ast.unparse(handler.type)}:"
                yield Found("durable_swallow", handler, f"`{shown}` also catches that the function leaves")
        for one in _own_nodes(node.finalbody):
            if isinstance(one, ast.Return):
                yield Found("durable_swallow", one, "`return` in `finally` hides that the function leaves")

    def _finally(self, node: ast.Try | ast.TryStar) -> Iterator[Found]:
        if not _has(node.body, _AWAITS):
            return
        for one in _own_nodes(node.finalbody):
            if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)):
                continue
            name = self._full(one.value.func)
            if name is not None and not name.startswith("weft.") and of_call(name, one.value) is None:
                message = f"`{ast.unparse(one.value.func)}()` in `finally` is also called when the function waits"
                yield Found("durable_finally", one, message)

    def _is_set(self, node: ast.AST, within: tuple[str, ...] = ()) -> bool:
        """Return True if its order may differ: numbers have the same order in each process."""
        match node:
            case ast.Set():
                return not all(isinstance(one, ast.Constant) and isinstance(one.value, int) for one in node.elts)
            case ast.SetComp():
                return True
            case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                return self._is_set(node.left, within)
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in _OF_SETS:
                return self._is_set(value, within)
            case ast.Call(func=func):
                return self._full(func) in ("builtins.set", "builtins.frozenset")
            case ast.Name(id=name) if name not in within:
                if name in self._waited():
                    return True
                values = self._values.get(name, ())
                return bool(values) and all(self._is_set(value, (*within, name)) for value in values)
        return False

    def _waited(self) -> set[str]:
        """Return the names of the two sets that asyncio.wait returns."""
        return {
            one.id
            for node in self._nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Await)
            and isinstance(node.value.value, ast.Call)
            and self._full(node.value.value.func) == "asyncio.wait"
            for target in node.targets
            for one in ast.walk(target)
            if isinstance(one, ast.Name)
        }

    def _sets(self) -> Iterator[Found]:
        for one in self._nodes:
            read: list[ast.expr] = []
            if isinstance(one, ast.For | ast.AsyncFor):
                read = [one.iter]
            elif isinstance(one, ast.ListComp | ast.GeneratorExp | ast.DictComp) and not self._is_unordered(one):
                read = [each.iter for each in one.generators]
            elif isinstance(one, ast.Starred):
                read = [] if isinstance(self._above.get(one), ast.Set) else [one.value]
            elif isinstance(one, ast.Call):
                joins = isinstance(one.func, ast.Attribute) and one.func.attr == "join"
                if joins or self._full(one.func) in _IN_ORDER | {"weft.gather"}:
                    read = one.args[:1]
                elif isinstance(one.func, ast.Attribute) and one.func.attr == "pop" and not one.args:
                    read = [one.func.value]
            for each in read:
                if self._is_set(each):
                    yield Found("durable_set", each, f"the order of `{ast.unparse(each)[:60]}` differs by process")

    def _is_unordered(self, node: ast.AST) -> bool:
        """Return True if the order of a comprehension does not count: it is an argument of sorted, sum, any, …"""
        above = self._above.get(node)
        names = ("sorted", "sum", "any", "all", "min", "max", "set", "frozenset", "len")
        return isinstance(above, ast.Call) and self._full(above.func) in {f"builtins.{name}" for name in names}

    def _changes(self) -> Iterator[Found]:
        for one in self._nodes:
            target: ast.AST | None = None
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load) and one.id in self._globals:
                target = one
            elif isinstance(one, ast.Attribute | ast.Subscript) and not isinstance(one.ctx, ast.Load):
                target = one.value
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGES:
                target = one.func.value
            while isinstance(target, ast.Attribute | ast.Subscript):
                target = target.value
            if not isinstance(target, ast.Name) or (isinstance(one, ast.Call) and self._may_be_module(target.id)):
                continue  # `operator.add(a, b)` changes nothing
            if self._outlives(target.id):
                yield Found("durable_global", one, f"this changes `{target.id}`, which all runs of the process share")

    def _may_be_module(self, name: str) -> bool:
        """Return True for an imported name, unless a file of the package assigns it."""
        if name in self._locals or name not in self._module.imports:
            return False
        place, _, own = self._module.imports[name].rpartition(".")
        there = self._module.package.module(place) if place else None
        return there is None or own not in there.globals

    def _outlives(self, name: str) -> bool:
        if name in self._globals:
            return True
        arguments = self._function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([one.arg for one in positional][::-1], arguments.defaults[::-1], strict=False))
        keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults |= {one.arg: value for one, value in keywords if value is not None}
        if name in self._locals:
            return isinstance(defaults.get(name), _MUTABLE)
        return name in self._module.globals or name in self._module.imports

    # --- calls without await ---

    def _unawaited(self) -> Iterator[Found]:
        for one in self._nodes:
            if not isinstance(one, ast.Call) or not self._must_be_awaited(one.func):
                continue
            shown, above = f"`{ast.unparse(one.func)}()`", self._above.get(one)
            if isinstance(above, ast.Expr):
                yield Found("durable_unawaited", one, f"{shown} is not awaited, so it is not done")
            elif _is_used(above, one):
                yield Found("durable_unawaited", one, f"{shown} is not awaited, so this is not its result")
            elif isinstance(above, ast.Assign | ast.AnnAssign) and above.value is one:
                targets = above.targets if isinstance(above, ast.Assign) else [above.target]
                if len(targets) == 1 and isinstance(targets[0], ast.Name) and self._is_lost(targets[0].id):
                    yield Found("durable_unawaited", one, f"{shown} is not awaited, nor is `{targets[0].id}`")

    def _must_be_awaited(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):  # charge.with_options(…)(…)
            node = node.func
        if isinstance(node, ast.Attribute) and node.attr == "with_options":
            node = node.value
        if isinstance(node, ast.Attribute) and node.attr in _OF_ASKED and isinstance(node.value, ast.Name):
            return self._is_asked(node.value.id)
        name = self._full(node)
        if name is None or name in _AWAITED:
            return name is not None
        known = self._module.package.function(name)
        if known is None:
            return False
        return isinstance(known[1], ast.AsyncFunctionDef) or decorated(*known)

    def _is_asked(self, name: str) -> bool:
        """Return True for a request of an update, or a run that was started."""
        for value in self._values.get(name, ()):
            if isinstance(value, ast.Await) and isinstance(value.value, ast.Call):
                called = value.value.func
                if (isinstance(called, ast.Attribute) and called.attr == "next") or self._full(called) == "weft.start":
                    return True
        patterns = (one for one in self._nodes if isinstance(one, ast.MatchAs) and one.name == name)
        kinds = (one.pattern.cls for one in patterns if isinstance(one.pattern, ast.MatchClass))
        return any(self._full(kind) == "weft.Ask" for kind in kinds)

    def _is_lost(self, name: str) -> bool:
        """Return True if the name is never awaited, nor passed on to where it may be."""
        loads = [one for one in self._nodes if isinstance(one, ast.Name) and one.id == name]
        return all(_is_used(self._above.get(one), one) for one in loads if isinstance(one.ctx, ast.Load))


def _is_used(above: ast.AST | None, node: ast.AST) -> bool:
    """Return True if a value is read here: a coroutine has none."""
    if isinstance(above, ast.If | ast.While | ast.IfExp):
        return above.test is node
    if isinstance(above, ast.For):
        return above.iter is node
    used = (ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.FormattedValue)
    return isinstance(above, used)


def _own_nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes but those of functions inside."""
    left: list[ast.AST] = list(statements)
    while left:
        one = left.pop(0)
        yield one
        if not isinstance(one, _NESTED):
            left += ast.iter_child_nodes(one)


def _has(statements: list[ast.stmt], kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(one, kinds) for one in _own_nodes(statements))
