"""The pages of the public names of `weft`, by use: what griffe reads in the code, without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import griffe

import weft
from docs.site.python_signature import bare, signature
from docs.site.python_tables import registry, rows_of
from docs.site.python_text import Docstring, first, spanned
from weft import draw, testing

ROOT: Final = Path(__file__).parents[2]
SOURCE_LINES_MAX: Final = 60
PACKAGES: Final = ("compiler", "executor", "server", "weft")


class Group(NamedTuple):
    """Names that are used together. `places` are beginnings of the modules that define them."""

    title: str
    about: str
    places: tuple[str, ...]

    @property
    def page(self) -> str:
        return "python-" + self.title.lower().replace(" ", "-")


# The first one that fits has the name.
GROUPS: Final = (
    Group("Errors", "What is raised, by the engine, by blocks and by workflows that are no document.",
          ("executor.errors", "compiler.builder.errors")),
    Group("Own blocks", "Block types of your own, and what a running one has.",
          ("executor.blocks.types", "executor.kernel.handler", "compiler.signature")),
    Group("Testing", "Real engines on a clock that is set by hand, scripted blocks, and crashes at every commit.",
          ("weft.testing",)),
    Group("Client", "A server as an object: blocking, and for asyncio. The wheel `weft-client` has these alone.",
          ("server.client",)),
    Group("Engine", "An engine in your program.", ("executor.open",)),
    Group("Drawn workflows", "Functions that are called once, to become a document of blocks.",
          ("compiler.tracing.ways", "compiler.tracing.workflow")),
    Group("Durable functions", "Ordinary Python whose runs survive a crash. Drawn workflows share steps and calls.",
          ("compiler.tracing", "executor", "asyncio")),
    Group("Builder", "Documents as objects: workflows, containers and every block type.", ("compiler",)),
)  # fmt: skip
# In the order in which one learns them.
ORDER: Final = (
    "Durable functions", "Drawn workflows", "Engine", "Client", "Testing", "Own blocks", "Builder", "Errors",
)  # fmt: skip
# Public for the parts of weft that call them.
INTERNAL: Final = frozenset(
    {"block", "build", "durable_calls", "evaluate", "inner", "prepare_child", "prepare_next", "queueing",
     "repeat_wanted", "waiting"}
)  # fmt: skip
LISTED: Final = ROOT / "docs" / "howto" / "use-python.md"


class Name(NamedTuple):
    name: str  # as it is imported: `weft.open`, `weft.testing.engine`
    found: griffe.Object

    @property
    def anchor(self) -> str:
        return self.name.removeprefix("weft.")


def group_of(place: str) -> Group:
    """Return the group of a name that the module `place` defines."""
    return next(group for group in GROUPS if place.startswith(group.places))


@cache
def public() -> dict[str, list[Name]]:
    """Return the names by the title of their group, in the order of `weft.__all__`."""
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)])
    for package in PACKAGES:
        loader.load(package)
    loader.resolve_aliases(implicit=True, external=False)
    found: dict[str, list[Name]] = {title: [] for title in ORDER}
    for defined, names in vars(weft)["_PLACES"].items():
        module, _, inside = defined.partition(":")
        for name in names.split():
            place = f"{module}.{inside or name}"
            is_ours = module.startswith(PACKAGES)
            value = loader.modules_collection[place] if is_ours else _of_python(place)
            found[group_of(module).title].append(Name(f"weft.{name}", _real(value)))
    for name in draw.__all__:
        value = _real(loader.modules_collection[f"weft.draw.{name}"])
        found[group_of(value.module.path).title].append(Name(f"weft.draw.{name}", value))
    for name in testing.__all__:
        value = loader.modules_collection[f"weft.testing.{name}"]
        found["Testing"].append(Name(f"weft.testing.{name}", _real(value)))
    return found


def _of_python(place: str) -> griffe.Object:
    """A name of Python's own library under another one."""
    return griffe.Attribute(place, docstring=griffe.Docstring(f"The `{place}` of Python."))


def _real(value: griffe.Object | griffe.Alias) -> griffe.Object:
    return value.final_target if isinstance(value, griffe.Alias) else value


@cache
def _links() -> dict[str, str]:
    """Return the addresses of the names, as they are and without `weft.`; of words alone only those with a capital."""
    links = {}
    for title, names in public().items():
        page = next(group.page for group in GROUPS if group.title == title)
        for each in names:
            links[each.name] = f"{page}.html#{each.anchor}"
            short = each.name.rpartition(".")[2]
            if short[0].isupper() or each.name.startswith(("weft.testing.", "weft.draw.")):
                links.setdefault(each.name.removeprefix("weft."), links[each.name])
    return links


def pages() -> dict[str, str]:
    """Return the texts by the name of the page: an index, and a page for each group."""
    made = {"python": "\n".join(_index()) + "\n"}
    for group in GROUPS:
        made[group.page] = "\n".join(_page(group)) + "\n"
    return made


def _index() -> Iterator[str]:
    yield f"# Names of weft\n\nWhat `import weft` {weft.__version__} offers, by use.\n"
    yield "[Stability](../stability.md) has what may change.\n"
    for title in ORDER:
        group = next(each for each in GROUPS if each.title == title)
        yield f"## [{title}]({group.page}.md)\n\n{group.about}\n\n| | |\n|---|---|"
        for each in public()[title]:
            yield f"| [`{each.name}`]({group.page}.md#{each.anchor}) | {_cell(first(each.found), each)} |"
        yield ""


def _page(group: Group) -> Iterator[str]:
    yield f"# {group.title}\n\n{group.about} [All names](python.md)\n"
    for each in public()[group.title]:
        yield f"## {each.name} {{ #{each.anchor} }}\n"
        yield from _class(each) if isinstance(each.found, griffe.Class) else _function(each, each.name)


def _function(each: Name, called: str) -> Iterator[str]:
    if isinstance(each.found, griffe.Function):
        yield signature(each.found, called)
    yield from _described(each)
    yield from _source(each.found)


def _class(each: Name) -> Iterator[str]:
    made, value = each.found, _value(each)
    assert isinstance(made, griffe.Class)
    is_error = issubclass(value, BaseException)
    # The constructors of most errors are for weft; what is made by something else has none for users.
    start = (made.members if is_error else made.all_members).get("__init__")
    is_given = made.docstring is not None and "Made by" in made.docstring.value
    if not is_given and start is not None and isinstance(real := _real(start), griffe.Function):
        yield signature(real, f"class {each.name}", drop_self=True)
    bases = [_linked(str(base)) for base in made.bases if str(base).rpartition(".")[2] in _links()]
    code = f"Code `{value.code}`." if is_error and getattr(value, "code", None) else ""
    type = str(getattr(value, "type", ""))
    block = f"Block type [`{type}`](blocks.md#{type})." if registry().get(type) is not None else ""
    if about := " ".join(filter(None, (f"A {', '.join(bases)}." if bases else "", code, block))):
        yield about + "\n"
    yield from _described(each, value)
    if each.name == "weft.draw.Block":
        yield from _described(Name("weft.draw.Block.options", _real(made.module["Options"])))
    yield from _source(made)
    if not is_error:
        yield from _methods(each, made)


def _value(each: Name) -> Any:
    """Return the class at run time."""
    module, _, name = each.name.rpartition(".")
    return getattr(import_module(module), name)


def _methods(each: Name, made: griffe.Class) -> Iterator[str]:
    """Those with a text: of the class and of what it is made of, but for what another public class has."""
    if each.name == "weft.AsyncClient":
        yield f"It also has the methods of {_linked('Client')}; each is awaited.\n"
        members: Iterable[tuple[str, griffe.Object | griffe.Alias]] = made.members.items()
    elif each.name == "weft.SyncEngine":
        yield f"It also has the topics and shortcuts of {_linked('Engine')}; none is awaited.\n"
        members = made.members.items()
    elif each.name == "weft.Engine":
        yield from _topics(each, made)
        return
    else:
        members = made.all_members.items()
    for name, value in members:
        real = _real(value)
        if isinstance(real, griffe.Function) and not name.startswith("_") and name not in INTERNAL and real.docstring:
            yield from _method(each, real, name)


def _method(each: Name, function: griffe.Function, called: str, anchor: str = "") -> Iterator[str]:
    yield f"### {called} {{ #{each.anchor}.{anchor or called} }}\n"
    yield signature(function, called, drop_self=True)
    yield from _described(Name(f"{each.name}.{called}", function))
    yield from _source(function)


def _topics(each: Name, made: griffe.Class) -> Iterator[str]:
    """The shortcuts of the engine, and the methods of its topics that docs/howto/use-python.md lists: the others are
    for the server."""
    start = made.members["__init__"]
    lines = "\n".join(start.source.splitlines()) if isinstance(start, griffe.Function) else ""
    made_of = dict(re.findall(r"self\.(\w+) = (\w+)\(", lines))

    def method(topic: str, name: str) -> griffe.Function | None:
        found = _real(made.module[made_of[topic]]).members.get(name)
        real = None if found is None else _real(found)
        return real if isinstance(real, griffe.Function) else None

    for name, topic, called in re.findall(r"self\.(\w+) = (?:awaited\()?self\.(\w+)\.(\w+)\b", lines):
        if (shortcut := method(topic, called)) is not None:
            yield from _method(each, shortcut, name)
    for topics, cell in re.findall(r"(?m)^\| (`engine\..*?) \| (.*) \|$", LISTED.read_text()):
        for topic in re.findall(r"`engine\.(\w+)`", topics):
            listed = [
                (name, found) for name in re.findall(r"`(\w+)`", cell) if (found := method(topic, name)) is not None
            ]
            if listed:
                yield f"### engine.{topic} {{ #engine.{topic} }}\n"
            for name, function in listed:
                yield f"**{topic}.{name}**\n"
                yield signature(function, f"engine.{topic}.{name}", drop_self=True)
                yield from _described(Name(f"weft.engine.{topic}.{name}", function))


def _described(each: Name, value: Any = None) -> Iterator[str]:
    """The text, with a table of the parameters or fields."""
    text = Docstring.read(each.found.docstring.value if each.found.docstring else "")
    link = _linker(each.name)
    if text.before:
        yield spanned(text.before, link) + "\n"
    rows = [row for row in rows_of(each.found, value) if not str(row.annotation).startswith("_")]
    has_defaults = any(row.default not in (None, "UNSET") for row in rows)
    if rows:
        yield "| | type | default | |\n|---|---|---|---|" if has_defaults else "| | type | |\n|---|---|---|"
    for row in rows:
        names = ", ".join(f"`{name}`" for name in row.names)
        type = "" if row.annotation is None else _typed(row.annotation)
        default = "" if row.default in (None, "UNSET") else f"`{bare(str(row.default))}`".replace("|", "\\|")
        yield f"| {names} | {type} |{f' {default} |' * has_defaults} {_cell(row.text, each)} |"
    if rows:
        yield ""
    if text.after:
        yield spanned(text.after, link) + "\n"


def _source(found: griffe.Object) -> Iterator[str]:
    """Where it is, and the text of what is short. A method of the clients that describes a call has no body."""
    if found.lineno is None or (isinstance(found, griffe.Function) and str(found.returns).startswith("Call[")):
        return
    path = Path(str(found.filepath)).relative_to(ROOT)
    where = f"{path}, line {found.lineno}"
    lines = found.source.splitlines()
    if len(lines) > SOURCE_LINES_MAX:
        yield f'<p class="source">{where}</p>\n'
    else:
        text = escape("\n".join(lines)).replace("\n", "&#10;")  # a line feed would end the raw HTML
        yield f'<details class="source"><summary>{where}</summary><pre><code>{text}</code></pre></details>\n'


def _typed(annotation: str | griffe.Expr) -> str:
    """An annotation in a cell, with links."""
    parts = annotation.iterate() if isinstance(annotation, griffe.Expr) else [annotation]
    text = "".join(_anchor(part) if isinstance(part, griffe.ExprName) else escape(str(part)) for part in parts)
    return f"<code>{bare(text).replace('|', '&#124;')}</code>"


def _anchor(part: griffe.ExprName) -> str:
    link = _paths().get(part.canonical_path)
    return part.name if link is None else f'<a href="{link}">{part.name}</a>'


@cache
def _paths() -> dict[str, str]:
    """Return the addresses of the names by where they are defined."""
    return {each.found.path: _links()[each.name] for names in public().values() for each in names}


def _linked(name: str) -> str:
    short = name.rpartition(".")[2]
    return f"[`{short}`]({_links()[short].replace('.html', '.md')})"


def _linker(own: str) -> Callable[[str], str | None]:
    def link(code: str) -> str | None:
        target = _links().get(code.removesuffix("()").removeprefix("@").partition("(")[0])
        return (
            None
            if target is None or own.startswith(f"weft.{code.removeprefix('weft.')}")
            else target.replace(".html", ".md")
        )

    return link


def _cell(text: str, each: Name) -> str:
    return spanned(text, _linker(each.name)).replace("|", "\\|").replace("\n", " ")
