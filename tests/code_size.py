"""Figures of the product's Python: how long files and functions are, what imports what in a circle, how large objects
and rooms are.

    python -m tests.code_size [FOLDER]        prints those of a checkout; of this one without FOLDER
    python -m tests.code_size --check         fails where a figure is above its bound (`make lint`)

A bound only ever falls: a change that makes a figure smaller lowers its bound.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from msgspec import Struct

PACKAGES = ("compiler", "executor", "server", "weft")
SHORT = 60  # lines
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
RECORDS = ("Struct", "NamedTuple", "Protocol", "TypedDict", "Enum", "Exception")  # what they hold is their purpose
BOUNDS = {
    "files": 660,
    "lines": 113_975,  # decision 61, seventh reading
    "longest file that is not generated": 520,
    f"functions over {SHORT} lines": 0,
    "modules in circles": 0,
    "circles of the rooms of executor": 0,
    "circles of the rooms of server": 0,
    "lines of executor.kernel.store": 11_030,  # polls of triggers, collections of documents, registrations at services
    "lines of executor.kernel.run": 8_770,  # steps of durable functions under way, lanes that are kept
    "lines of executor.kernel.core": 3_240,
    "lines of executor.kernel.values": 3_117,  # times every so many seconds
}
FLOORS = ("executor.kernel.", "executor.blocks.", "executor.service.")
GENERATED = ("server.client.answers",)


class Module(Struct):
    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return self.text.count("\n")


class Graphs(Struct):
    """What modules import when they are loaded, and in all: for types and inside functions as well."""

    loaded: nx.DiGraph
    whole: nx.DiGraph


def modules(root: Path, packages: tuple[str, ...] = PACKAGES) -> list[Module]:
    """Those that are not empty."""
    found = []
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if text.strip():
                parts = path.relative_to(root).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found.append(Module(name, text, ast.parse(text)))
    return found


def imports(found: list[Module]) -> Graphs:
    names = {module.name for module in found}
    graphs = Graphs(nx.DiGraph(), nx.DiGraph())
    graphs.loaded.add_nodes_from(names)
    graphs.whole.add_nodes_from(names)
    for module in found:
        for target, at_load in _targets(module.tree, names):
            if target != module.name:
                graphs.whole.add_edge(module.name, target)
                if at_load:
                    graphs.loaded.add_edge(module.name, target)
    return graphs


def _targets(node: ast.AST, names: set[str], at_load: bool = True) -> Iterator[tuple[str, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, at_load) for alias in child.names if alias.name in names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                inner = f"{child.module}.{alias.name}"
                if inner in names or child.module in names:
                    yield (inner if inner in names else child.module), at_load
        else:
            lazy = isinstance(child, Function) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            )
            yield from _targets(child, names, at_load and not lazy)


def circles(graph: nx.DiGraph) -> str:
    """How many, and of how many modules each is."""
    sizes = sorted((len(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1), reverse=True)
    return f"{len(sizes)} ({', '.join(map(str, sizes))})" if sizes else "0"


def rooms(graph: nx.DiGraph, package: str) -> nx.DiGraph:
    """Between the folders of a package; a module that lies in none is a room of its own."""
    inside = [name for name in graph if name.startswith(f"{package}.")]
    edges = ((a.split(".")[1], b.split(".")[1]) for a, b in graph.subgraph(inside).edges)
    return nx.DiGraph((a, b) for a, b in edges if a != b)


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def classes(found: list[Module]) -> Iterator[tuple[str, ast.ClassDef]]:
    for module in found:
        yield from ((f"{module.name}.{n.name}", n) for n in ast.walk(module.tree) if isinstance(n, ast.ClassDef))


def attributes(node: ast.ClassDef) -> set[str]:
    """What methods set on `self`, and what the class declares."""
    declared = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    stored = {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and ast.unparse(n.value) == "self"
    }
    return declared | stored


def is_record(node: ast.ClassDef) -> bool:
    named = [ast.unparse(base) for base in (*node.bases, *node.decorator_list)]
    return any(word in name for name in named for word in (*RECORDS, "dataclass"))


def parameters(node: Function) -> int:
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([one for one in named if one.arg not in ("self", "cls")])


def depth(node: ast.AST) -> int:
    """Of blocks inside each other; `elif` is none."""
    inner = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.Lambda, *FUNCTIONS)):
            continue
        chained = isinstance(node, ast.If) and isinstance(child, ast.If) and node.orelse == [child]
        inner = max(inner, depth(child) + (isinstance(child, BLOCKS) and not chained))
    return inner


def public(found: list[Module]) -> Iterator[tuple[str, bool]]:
    """Classes, functions and methods by name, and whether each has a docstring."""
    for module in found:
        owners: list[ast.Module | ast.ClassDef] = [module.tree]
        owners += [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
        for owner in owners:
            if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
                continue
            for node in owner.body:
                if isinstance(node, (ast.ClassDef, *FUNCTIONS)) and not node.name.startswith("_"):
                    yield f"{module.name}.{node.name}", ast.get_docstring(node) is not None


def comments(module: Module) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return len([token for token in tokens if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")])


def is_marker(module: Module) -> bool:
    """An `__init__.py` with a docstring and nothing else."""
    return len(module.tree.body) == 1 and isinstance(module.tree.body[0], ast.Expr)


def room_lines(found: list[Module]) -> Counter[str]:
    """The lines of each folder of a package, with the folders in it."""
    counts: Counter[str] = Counter()
    for module in found:
        depth = 3 if module.name.startswith(FLOORS) else 2
        counts[".".join(module.name.split(".")[:depth])] += module.lines
    return counts


def kinds(found: list[Module]) -> dict[str, int]:
    """What the lines are: docstrings, comments, imports, blank ones, and the rest."""
    counts = dict.fromkeys(("code", "docstrings", "comments", "imports", "blank"), 0)
    for module in found:
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                counts["imports"] += (node.end_lineno or 0) - node.lineno + 1
            elif isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node) is not None:
                first = node.body[0]
                counts["docstrings"] += (first.end_lineno or 0) - first.lineno + 1
        counts["comments"] += comments(module)
        counts["blank"] += sum(not line.strip() for line in module.text.splitlines())
    counts["code"] = sum(module.lines for module in found) - sum(counts.values())
    return counts


def bounded(root: Path) -> dict[str, int]:
    """The figures that BOUNDS holds."""
    found = modules(root)
    graph = imports(found).whole
    rooms_of = room_lines(found)
    lengths = [(node.end_lineno or 0) - node.lineno + 1 for module in found for node in functions(module.tree)]
    in_circles = (len(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1)

    def room_circles(package: str) -> int:
        return sum(len(circle) > 1 for circle in nx.strongly_connected_components(rooms(graph, package)))

    return {
        "files": len(found),
        "lines": sum(module.lines for module in found),
        "longest file that is not generated": max(one.lines for one in found if one.name not in GENERATED),
        f"functions over {SHORT} lines": sum(length > SHORT for length in lengths),
        "modules in circles": sum(in_circles),
        "circles of the rooms of executor": room_circles("executor"),
        "circles of the rooms of server": room_circles("server"),
        "lines of executor.kernel.store": rooms_of["executor.kernel.store"],
        "lines of executor.kernel.run": rooms_of["executor.kernel.run"],
        "lines of executor.kernel.core": rooms_of["executor.kernel.core"],
        "lines of executor.kernel.values": rooms_of["executor.kernel.values"],
    }


def check(root: Path) -> list[str]:
    """Return what is above its bound, and links in git: a checkout of one named .venv replaces an environment."""
    figures = bounded(root)
    tracked = subprocess.run(["git", "ls-files", "-s"], cwd=root, capture_output=True, text=True, check=True).stdout
    links = [line.split("\t")[1] for line in tracked.splitlines() if line.startswith("120000 ")]
    above = [f"{name}: {figures[name]:,}, at most {most:,}" for name, most in BOUNDS.items() if figures[name] > most]
    return [*above, *(f"{link}: a symbolic link is in git; git rm --cached {link}" for link in links)]


def table(root: Path) -> list[tuple[str, str]]:
    found = modules(root)
    graphs = imports(found)
    lines = [module.lines for module in found]
    short = len([count for count in lines if count < SHORT])
    markers = len([module for module in found if is_marker(module)])
    every = [(f"{module.name}.{node.name}", node) for module in found for node in functions(module.tree)]
    lengths = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in every}
    longest = max(lengths, key=lengths.__getitem__)
    widest = max(every, key=lambda one: parameters(one[1]))
    objects = {name: node for name, node in classes(found) if not is_record(node)}
    records = {name: node for name, node in classes(found) if is_record(node)}
    methods = {name: len([n for n in node.body if isinstance(n, FUNCTIONS)]) for name, node in objects.items()}
    held = {name: len(attributes(node)) for name, node in objects.items()}
    fields = {name: len(attributes(node)) for name, node in records.items()}
    described = [has for _, has in public(found)]
    tests = sum(module.lines for module in modules(root, ("tests",)))
    return [
        ("files, lines", f"{len(found)}, {sum(lines):,}"),
        ("file median / max", f"{statistics.median(lines):g} / {max(lines)} ({found[lines.index(max(lines))].name})"),
        (f"files under {SHORT} lines", f"{short} ({short / len(found):.0%})"),
        ("those without package markers", f"{short - markers} ({(short - markers) / (len(found) - markers):.0%})"),
        (f"functions over {SHORT} lines", str(len([count for count in lengths.values() if count > SHORT]))),
        ("longest function", f"{lengths[longest]} ({longest})"),
        ("deepest nesting", _largest({name: depth(node) for name, node in every}, 1)),
        ("most parameters", f"{parameters(widest[1])} ({widest[0]})"),
        ("circles at load time", circles(graphs.loaded)),
        ("circles with typing and lazy imports", circles(graphs.whole)),
        *((f"circles of {p}", circles(graphs.whole.subgraph(_of(graphs.whole, p)))) for p in PACKAGES),
        *((f"circles of the rooms of {p}", circles(rooms(graphs.whole, p))) for p in ("executor", "server")),
        ("public names without docstring", f"{1 - sum(described) / len(described):.0%} of {len(described)}"),
        ("comment lines", f"{sum(map(comments, found)) / sum(lines):.1%}"),
        ("most attributes of a class", _largest(held)),
        ("most methods of a class", _largest(methods)),
        ("most fields of a record", _largest(fields)),
        *((f"lines of {room}", f"{count:,}") for room, count in room_lines(found).most_common(12)),
        *((f"lines: {kind}", f"{count:,}") for kind, count in kinds(found).items()),
        ("tests : src", f"{tests / sum(lines):.2f}"),
    ]


def _of(graph: nx.DiGraph, package: str) -> list[str]:
    return [name for name in graph if name.partition(".")[0] == package]


def _largest(numbers: dict[str, int], count: int = 3) -> str:
    first = sorted(numbers, key=numbers.__getitem__, reverse=True)[:count]
    return ", ".join(f"{numbers[name]} ({name.rpartition('.')[2]})" for name in first)


def main() -> None:
    root = Path(__file__).parents[1]
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(check(root)) or 0)
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else root
    for name, value in table(root):
        print(f"{name:38} {value}")


if __name__ == "__main__":
    main()
