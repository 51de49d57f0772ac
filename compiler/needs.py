"""Needs of blocks: every reference in their params and policy, bound, with their JavaScript checked for syntax; and the
environment names, stored secrets and connections that a document names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from compiler import javascript, python
from compiler.bind import Binder, Reader, is_env_name
from compiler.catalog import Catalog, CodeKind, Finding
from compiler.check import pointer_to
from compiler.diagnostics import Diagnostic, Report, suggest
from compiler.document import BlockDoc, Limits
from compiler.plan import Ref
from compiler.references import ENV, Found, find, texts, unescape
from compiler.schema import Kind, checker_of
from compiler.variables import Variables, parse_path
from compiler.wiring import Wiring

# A document beyond these was not written by people; checking it would hold up all others.
REFERENCES_PER_BLOCK_MAX: Final = 20  # on average
SOURCES_PER_BLOCK_MAX: Final = 2  # different ones, on average
SOURCE_LENGTH_PER_BLOCK_MAX: Final = 500  # characters, on average
SYNTAX_ERRORS_MAX: Final = 50  # a source that is made to be slow to parse counts as one error

_WORD = re.compile(r"[\w$]+")
_NO_POLICY: Final = BlockDoc("", "", "").policy
_POLICY_TEXTS: Final[tuple[tuple[str, CodeKind | None], ...]] = (
    ("skip_if", "expression"),
    ("cache/key", "expression"),
    ("limit/key", None),
)


class Needs(Struct):
    """The references of a block: `refs` by the top-level param that contains them ("" for the policy), then by
    `Ref.text`. `code` and `literal` are JSON pointers into the params."""

    refs: dict[str, dict[str, Ref]]
    code: list[str]
    literal: list[str]

    def of(self, params: Mapping[str, Any], with_skip_if: bool = True) -> tuple[Ref, ...]:
        """References of these params, each text once."""
        found: dict[str, Ref] = {}
        for name, refs in self.refs.items():
            if name in params or (with_skip_if and not name):
                found.update(refs)
        return tuple(found.values())

    def code_in(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(pointer for pointer in self.code if unescape(pointer.split("/", 2)[1]) in params)


class Gatherer:
    """Gathers the needs of one document's blocks. Equal sources are checked once."""

    def __init__(
        self,
        wiring: Wiring,
        binder: Binder,
        variables: Variables,
        catalog: Catalog,
        report: Report,
        limits: Limits,
    ) -> None:
        self._wiring = wiring
        self._binder = binder
        self._variables = variables
        self._catalog = catalog
        self._report = report
        self._limits = limits
        self._bound = 0
        self._length = 0
        self._syntax_errors = 0
        self._exceeded = False
        self._checked: dict[tuple[str, str], str | Finding | None] = {}

    def needs_of(self, block: BlockDoc) -> Needs:
        if block.pin is not None:  # its params are not read
            return Needs({}, [], [])
        spec = self._wiring.specs[block.id]
        kinds = checker_of(spec).kinds(block.params) if spec is not None else {}
        needs = Needs({}, [], outermost(pointer for pointer, kind in kinds.items() if kind == "literal"))
        outer = Reader(block.id, self._wiring.parent[block.id])
        policy = msgspec.to_builtins(block.policy) if block.policy is not _NO_POLICY else None
        for pointer, text, kind in _texts_of(block.params, policy, kinds):
            where = pointer_to(block.id) + pointer
            _, holder, param, *_ = pointer.split("/", 3)
            if pointer.endswith("/$ref") and text.startswith("$"):
                self._variable(text, block.id, where)
            is_test = spec is not None and spec.container == "loop" and pointer == "/params/condition"
            reader = Reader(block.id, block.id, ahead=True) if is_test else outer
            refs = needs.refs.setdefault(unescape(param) if holder == "params" else "", {})
            if kind is None:
                self._text(text, reader, where, refs)
                continue
            if holder == "params":
                needs.code.append(pointer.removeprefix("/params"))
            self._code(text, kind, reader, where, refs)
        return needs

    def _text(self, text: str, reader: Reader, where: str, refs: dict[str, Ref]) -> None:
        is_markup = "</" in text  # tags of HTML come in pairs
        for found in find(text):
            if found.key not in refs:
                ref = self._bind(found, reader, where)
                if ref is not None:
                    refs[found.key] = ref
                elif not is_markup:
                    self._binder.guess_alone(found, reader, where)

    def _bind(self, found: Found, reader: Reader, where: str, guess: bool = True) -> Ref | None:
        """Bind a reference. Returns None also for references beyond the limit, which is reported."""
        self._bound += 1
        most = self._limits.blocks * REFERENCES_PER_BLOCK_MAX
        if self._bound <= most:
            return self._binder.bind(found, reader, where, guess)
        if self._bound == most + 1:
            message = f"The document has more than {most:,} references."
            self._report.add("limit_references", where, message)
        return None

    def _code(self, source: str, kind: CodeKind, reader: Reader, where: str, refs: dict[str, Ref]) -> None:
        missing: dict[str, Found] = {}
        self._length += len(source)
        if self._length > self._limits.blocks * SOURCE_LENGTH_PER_BLOCK_MAX:
            self._too_much_code(where)
            return

        def known(found: Found) -> bool:
            if found.key in refs:
                return True
            if found.key in missing or (found.env and declares(source, found.text)):
                return False
            ref = self._bind(found, reader, where, guess=False)
            if ref is None:
                missing[found.key] = found
                return False
            refs[found.key] = ref
            return True

        reading = python if kind == "python" else javascript
        for place, found in reading.references(source, known):
            around = source[found.start - 1 : found.start], source[found.end : found.end + 1]
            if place == "string" and around[0] in ("'", '"') and around[0] == around[1]:
                message = f"The quotes around <{found.text}> turn it into text."
                self._report.add(
                    "reference_quoted",
                    where,
                    message,
                    hint="Remove the quotes to read the value.",
                    block=reader.block,
                )
        problem = self._syntax(reading.rewrite(source, refs).source, kind, where) if source.strip() else None
        if isinstance(problem, Finding):
            message = f"{self._wiring.called(reader.block)}: {problem.message}"
            self._report.add(problem.code, where, message, hint=problem.hint, block=reader.block)
            problem = None
        if problem is not None and missing:
            # With the names that nothing has taken for references it parses: then they are what is wrong.
            meant = reading.rewrite(source, {**refs, **missing}).source
            if self._syntax(meant, kind, where) is None:
                misspelt = [self._binder.misspelt(found, reader, where) for found in missing.values()]
                problem = None if any(misspelt) else problem
                missing = {}
        for found in missing.values():
            self._binder.guess(found, reader, where)
        if problem is not None:
            what = "expression" if kind == "expression" else "code"
            language = "Python" if kind == "python" else "JavaScript"
            message = f"{self._wiring.called(reader.block)}: The {what} is not valid {language}: {problem[:300]}."
            self._report.add("expression_invalid", where, message, block=reader.block)

    def _syntax(self, source: str, kind: CodeKind, where: str) -> str | Finding | None:
        key = (kind, source)
        if key not in self._checked:
            if len(self._checked) >= self._limits.blocks * SOURCES_PER_BLOCK_MAX:
                self._too_much_code(where)
                return None
            if self._syntax_errors >= SYNTAX_ERRORS_MAX:
                return None
            self._checked[key] = self._catalog.check_syntax(source, kind)
        problem = self._checked[key]
        if problem is not None:
            self._syntax_errors += 1
        return problem

    def _too_much_code(self, where: str) -> None:
        if not self._exceeded:
            blocks = self._limits.blocks
            message = (
                f"The document has more than {blocks * SOURCES_PER_BLOCK_MAX:,} different expressions and programs, "
                f"or they have more than {blocks * SOURCE_LENGTH_PER_BLOCK_MAX:,} characters."
            )
            self._report.add("limit_expressions", where, message)
        self._exceeded = True

    def _variable(self, text: str, block: str, where: str) -> None:
        path = parse_path(text)
        if path is None:
            if text != "$":
                message = f'"{text[:80]}" is not a path of a variable.'
                self._report.add("path_invalid", where, message, block=block)
        elif self._variables.find(str(path[0])) is None:
            self._variables.undeclared(str(path[0]), where, block, "reads")


def declares(source: str, name: str) -> bool:
    """Return whether the program uses `name` other than as `${name}`. Then it is a JavaScript name of its own."""
    words, environment = _uses(source)
    return words[name] > environment[name]


@lru_cache(maxsize=4)  # a program is asked about once for each name in it
def _uses(source: str) -> tuple[Counter[str], Counter[str]]:
    return Counter(_WORD.findall(source)), Counter(ENV.findall(source))


def outermost(pointers: Iterable[str]) -> list[str]:
    """Return the pointers that do not lie below another one, sorted."""
    all = set(pointers)
    return sorted(pointer for pointer in all if not any(above in all for above in _above(pointer)))


def _above(pointer: str) -> Iterator[str]:
    while pointer:
        pointer = pointer.rpartition("/")[0]
        yield pointer


def environment_names(
    document: Mapping[str, Any], catalog: Catalog, known: Collection[str] = frozenset()
) -> dict[str, list[str]]:
    """Return the ids of the blocks that read `${NAME}`, by name, in document order. `known` are the names that are set
    here; another name counts if it is written as environment names are. Never raises."""
    names: dict[str, list[str]] = {}
    blocks = document.get("blocks")
    for block_id, block in blocks.items() if isinstance(blocks, dict) else ():
        if isinstance(block, dict):
            for name in dict.fromkeys(name for _, name in names_of(block, catalog, known)):
                names.setdefault(name, []).append(str(block_id))
    return names


def names_of(block: Mapping[str, Any], catalog: Catalog, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """JSON pointer in the block, and each environment name that is read there. Never raises."""
    params, type = block.get("params"), block.get("type")
    params = params if isinstance(params, dict) else {}
    spec = catalog.get(type) if isinstance(type, str) else None
    kinds = checker_of(spec).kinds(params) if spec is not None else {}
    for pointer, text, kind in _texts_of(params, block.get("policy"), kinds):
        names = _names_in_text(text, known) if kind is None else _names_in_code(text, known, kind)
        yield from ((pointer, name) for name in names)


def _texts_of(
    params: Mapping[str, Any], policy: Any, kinds: Mapping[str, Kind]
) -> Iterator[tuple[str, str, CodeKind | None]]:
    """Yield the pointer in the block, and the kind, of each text with references, and of all code."""
    for pointer, text, _ in texts(params, ()):
        kind = kinds.get(pointer)
        if kind is None and "<" not in text and "${" not in text and not pointer.endswith("/$ref"):
            continue  # by far the usual case
        if kind != "literal":
            yield f"/params{pointer}", text, kind
    for path, code in _POLICY_TEXTS if isinstance(policy, Mapping) else ():
        found: Any = policy
        for part in path.split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found and isinstance(found, str):
            yield f"/policy/{path}", found, code


def _names_in_text(text: str, known: Collection[str]) -> list[str]:
    return [found.text for found in find(text) if found.env and is_env_name(found.text, known)]


def _names_in_code(source: str, known: Collection[str], kind: CodeKind) -> list[str]:
    reading = python if kind == "python" else javascript

    def is_environment(found: Found) -> bool:
        return found.env and is_env_name(found.text, known) and not declares(source, found.text)

    return [found.text for _, found in reading.references(source, is_environment)]


# The part of a URL before its path, which decides the host. Some clients read a backslash as a slash; `${NAME}` may be
# in it.
_AUTHORITY = re.compile(r"\s*(?:[^/?#\\:]*:)?(?:[/\\]{2})?[^/?#\\]*")


def check_secrets(wiring: Wiring, catalog: Catalog, stored: Collection[str], report: Report) -> None:
    """Report one finding for each place. `stored` are the names of stored secrets."""
    if not stored:
        return
    for id, block in wiring.blocks.items():
        spec = wiring.specs[id]
        if spec is None:
            continue
        checker = checker_of(spec)
        permitted = {f"/params{place}" for place in checker.secret_places(block.params)}
        for place, url in checker.urls(block.params):
            found = _AUTHORITY.match(url)
            for name in dict.fromkeys(ENV.findall(found[0]) if found is not None else ()):
                if name in stored:
                    message = f"{wiring.called(id)}: The secret {name} cannot be in the scheme, host or port of a URL."
                    report.add("secret_in_address", pointer_to(id, "params") + place, message, block=id)
        for pointer, name in dict.fromkeys(names_of(msgspec.to_builtins(block), catalog, stored)):
            if name in stored and pointer not in permitted:
                message = f"{wiring.called(id)}: The secret {name} cannot be used here; the block fails."
                report.add("secret_misplaced", pointer_to(id) + pointer, message, block=id)


Place = tuple[str, str]  # the pointer in the params, and the name


def missing_connections(document: Any, catalog: Catalog, known: Mapping[str, bool]) -> list[Diagnostic]:
    """Return a warning for each name that is not in `known`, or not signed in there. Errors in the form of the document
    are ignored."""
    report = Report()
    blocks = document.get("blocks") if isinstance(document, dict) else None
    for id, block in blocks.items() if isinstance(blocks, dict) else ():
        type = block.get("type") if isinstance(block, dict) else None
        for pointer, name in _places(block.get("params"), type, catalog, True) if isinstance(type, str) else ():
            if known.get(name):
                continue
            code, message = "connection_unknown", f'There is no connection "{name[:80]}" on this server.'
            hint = suggest(name, known) or "An administrator can add it in Settings, Connections."
            if name in known:
                code, message = "connection_needs_sign_in", f'The connection "{name[:80]}" needs a sign-in.'
                hint = "An administrator can sign in in Settings, Connections."
            report.add(code, f"{pointer_to(id)}/params{pointer}", message, hint=hint, block=id)
    return report.sorted()


def _places(params: Any, type: str, catalog: Catalog, tools: bool) -> Iterator[Place]:
    """`tools`: these are looked into, too."""
    spec = catalog.get(type)
    if spec is not None:
        yield from _within(params, spec.params, "", catalog, tools)


def _within(value: Any, schema: Mapping[str, Any], pointer: str, catalog: Catalog, tools: bool) -> Iterator[Place]:
    if isinstance(value, str):
        if value and (schema.get("x-ui") or {}).get("widget") == "connection":
            yield pointer, value
    elif isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name in value:
                yield from _within(value[name], inner, f"{pointer}/{name}", catalog, tools)
        block, params = value.get("block"), value.get("params")
        if tools and isinstance(block, str) and isinstance(params, dict):
            yield from ((f"{pointer}/params{place}", name) for place, name in _places(params, block, catalog, False))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _within(item, schema.get("items") or {}, f"{pointer}/{at}", catalog, tools)
