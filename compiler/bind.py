"""Binds the text of a reference to the value that it reads: `<draft.content>` in block `ask` -> Ref(kind="block",
node=4, ...).

Names are looked up from the inside out: `loop` and `parallel` (the innermost around the reader), the names of the
containers around it, `workflow` / `variable`, `input`, then blocks by name or id. If several names match, the longest
wins. A text without a known name is not a reference and stays as it is.

How a block is read depends on its place. Seen from the innermost container that holds both reader and block: upstream
of the reader, it is read in this scope (`current`), or, if it lies in a loop, in the loop's last iteration (`last`);
otherwise feedback: the iteration before (`previous`), if there is a loop around; without one it cannot be read at all.

A cleanup comes after all that it cleans up for: in that of a loop, the loop's blocks are read in its last iteration; in
that of the run, every block of the root is upstream. A block that it reads may not have run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher
from functools import partial
from typing import Any, Final

from msgspec import Struct

from compiler.diagnostics import Report, closest, suggest
from compiler.flow import Flow
from compiler.keys import CLEANUP_SUFFIX
from compiler.plan import Ref
from compiler.references import Found, Parsed, normalize, parse, unblanked
from compiler.variables import Variables
from compiler.wiring import ROOT, Wiring

RESERVED: Final = ("loop", "parallel", "workflow", "variable", "input")
LOOP_FIELDS: Final = ("index", "iteration", "item", "items", "results", "break")
OUTCOME: Final = "outcome"  # how a container has ended: in its cleanup
PARALLEL_FIELDS: Final = ("index", "iteration", "item", "items")
ALIASES: Final = {"currentItem": "item"}
# Guessing at names costs a comparison with each of them.
GUESSES_MAX: Final = 50

_ALIKE: Final = 0.75

_ENV_STYLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_NAME = re.compile(r"[\w-]+")
_FIELD = re.compile(r"[\w$@][\w$@ -]*")
# `n - 1` is a field like `content - type`; nearly always it is meant to be computed.
_OPERATOR = re.compile(r"[+*/%^&|]|[=!]=|\s-\s")
_OPERANDS = re.compile(r"[\w$@ .+*/%^&|=!-]+")

Segments = tuple[str | int, ...]


class Reader(Struct, frozen=True):
    """The block that reads. `container` is the innermost one around the text. `ahead`: the text is that loop's own
    test, which runs before the next iteration, so that everything in the body is an iteration earlier."""

    block: str
    container: str
    ahead: bool = False


class Places(Struct, frozen=True):
    """Numbers of the plan: `node` by block id (of a container its end sentinel), `region` by container id."""

    node: Mapping[str, int]
    region: Mapping[str, int]


class Binder:
    """Binds references and reports errors in them. `flows` are by container id. `sound` is false if the graph has
    cycles: then references are not checked for being upstream. `env_names` is None if they are unknown."""

    def __init__(
        self,
        wiring: Wiring,
        flows: Mapping[str, Flow],
        places: Places,
        variables: Variables,
        report: Report,
        env_names: Collection[str] | None,
        sound: bool,
    ) -> None:
        self._wiring = wiring
        self._flows = flows
        self._places = places
        self._variables = variables
        self._report = report
        self._env_names = env_names
        self._sound = sound
        self._guesses = 0
        self._schemas: dict[str, dict[str, Any] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._looked_up: dict[Segments, tuple[str | None, int]] = {}
        self._chains: dict[str, tuple[str, ...]] = {ROOT: ()}
        for block in wiring.document.blocks.values():
            self._names.setdefault(normalize(block.name), []).append(block.id)
        for block_id in wiring.document.blocks:
            self._names.setdefault(normalize(block_id), []).append(block_id)
        self._name_length_max = max(map(len, self._names), default=0)
        self._shared = any(len(set(blocks)) > 1 for blocks in self._names.values())

    def bind(self, found: Found, reader: Reader, pointer: str, guess: bool = True) -> Ref | None:
        """Return the bound reference, or None if `found` is not a reference, or one with an error, which is reported.
        With `guess` false, unknown names are not reported."""
        if found.env:
            return self._env(found, reader, pointer)
        parsed = parse(found.text)
        if parsed is None:
            self._check_default(found, reader, pointer)
            return None
        ref = self._scope(found, parsed, reader, pointer)
        if ref is not None:
            return ref
        match normalize(str(parsed.segments[0])):
            case "workflow" | "variable":
                return self._variable(found, parsed, reader, pointer)
            case "input":
                return Ref(found.text, "input", path=parsed.segments[1:], default=parsed.default)
            case _:
                return self._named(found, parsed, reader, pointer, guess)

    def _env(self, found: Found, reader: Reader, pointer: str) -> Ref | None:
        name = found.text
        if not is_env_name(name, self._env_names or ()):
            return None
        known = self._env_names is not None and name in self._env_names
        if not known and self._env_names is not None:
            message = f"{found.key} is not set on this server."
            names = self._env_names
            self._report.add("env_unknown", pointer, message, hint=lambda: suggest(name, names), block=reader.block)
        return Ref(found.key, "env", path=(name,))

    def _scope(self, found: Found, parsed: Parsed, reader: Reader, pointer: str) -> Ref | None:
        first = normalize(str(parsed.segments[0]))
        if first in ("loop", "parallel"):
            around = next((c for c in self._around(reader) if self._wiring.kind(c) == first), None)
            used = 1
            if around is None:
                fields = LOOP_FIELDS if first == "loop" else PARALLEL_FIELDS
                if len(parsed.segments) > 1 and parsed.segments[1] in (*fields, *ALIASES) and first not in self._names:
                    message = f"<{found.text}> is not inside a {first}."
                    self._report.add("reference_outside_container", pointer, message, block=reader.block)
                return None
        elif reader.container == ROOT:
            return None
        else:
            block, used = self._lookup(parsed.segments)
            if parsed.segments[used:] == (OUTCOME,) and f"{block}{CLEANUP_SUFFIX}" in self._around(reader):
                region = self._places.region[f"{block}{CLEANUP_SUFFIX}"]
                return Ref(found.text, "scope", region=region, path=(OUTCOME,), default=parsed.default)
            around = block if block is not None and block in self._around(reader) else None
        if around is None:
            return None
        kind = self._wiring.kind(around)
        fields = LOOP_FIELDS if kind == "loop" else PARALLEL_FIELDS
        path = parsed.segments[used:]
        field = ALIASES.get(str(path[0]), path[0]) if path else ""
        if field not in fields:
            has = f"Inside {self._wiring.called(around)} there are {', '.join(fields)}."
            message = f"<{found.text}> has no value."
            self._report.add("reference_unknown_field", pointer, message, hint=has, block=reader.block)
            if not path:
                return None
        region = self._places.region[around]
        return Ref(found.text, "scope", region=region, path=(field, *path[1:]), default=parsed.default)

    def _variable(self, found: Found, parsed: Parsed, reader: Reader, pointer: str) -> Ref | None:
        name = ""
        for used in range(_texts_at(parsed.segments), 1, -1):
            name = ".".join(map(str, parsed.segments[1:used]))
            declared = self._variables.find(name)
            if declared is not None:
                path = (declared, *parsed.segments[used:])
                return Ref(found.text, "variable", path=path, default=parsed.default)
        if name:
            self._variables.undeclared(name, pointer, reader.block, "reads")
        return None

    def _named(self, found: Found, parsed: Parsed, reader: Reader, pointer: str, guess: bool) -> Ref | None:
        block, used = self._lookup(parsed.segments)
        path = parsed.segments[used:]
        if block is None:
            if guess:
                self.guess(found, reader, pointer)
            return None
        if not all(isinstance(part, int) or _FIELD.fullmatch(part) for part in path):
            if guess:
                self._computes(found, path, reader, pointer)
            return None  # `a <b.length; x> ...`: code or prose, not a reference
        if self._shared:
            namesakes = dict.fromkeys(self._names[normalize(".".join(map(str, parsed.segments[:used])))])
            if len(namesakes) > 1:
                others = " or ".join(f"<{other}>" for other in [*namesakes][:4])
                message = f"<{found.text}>: {len(namesakes)} blocks have this name. <{block}> is read."
                hint = f"Rename one of them, or use {others} in references."
                self._report.add("name_ambiguous", pointer, message, hint=hint, block=reader.block)
        if block not in self._wiring.reached:
            why = "is disabled" if block not in self._wiring.blocks else "does not run with this trigger"
            message = f"<{found.text}> is null: {self._wiring.called(block)} {why}."
            self._report.add("reference_absent", pointer, message, block=reader.block)
            return Ref(found.text, "variable", path=("",), default=parsed.default)  # no variable has an empty name
        strict = self._check_field(block, path, found, reader, pointer)
        if not strict:
            self._computes(found, path, reader, pointer)
        return self._placed(block, path, strict, found, parsed, reader, pointer)

    def _placed(
        self, block: str, path: Segments, strict: bool, found: Found, parsed: Parsed, reader: Reader, pointer: str
    ) -> Ref | None:
        default = parsed.default
        read = partial(
            Ref, found.text, "block", node=self._places.node[block], path=path, default=default, strict=strict
        )
        holder, seen = self._wiring.parent[block], block
        crossed = False
        positions = self._positions(reader)
        while holder not in positions:
            if self._wiring.kind(holder) == "parallel":
                inside = self._wiring.called(holder)
                message = f"<{found.text}> reads a block inside {inside}, which has one result per branch."
                hint = f"Use <{self._wiring.blocks[holder].name}.results>, a list with one entry per branch."
                self._report.add("reference_into_parallel", pointer, message, hint=hint, block=reader.block)
                return None
            holder, seen, crossed = self._wiring.parent[holder], holder.removesuffix(CLEANUP_SUFFIX), True
        position = positions[holder]
        if self._is_cleaned_up(holder, seen, crossed, position, reader):
            if default is None and seen != self._wiring.trigger:
                when = f"{self._wiring.called(seen)} did not run before the cleanup"
                self._may_be_null(found, when, reader, pointer)
            return read(mode="last" if crossed else "current")
        if not self._sound:
            return read()
        flow = self._flows[holder]
        if position is not None and seen != ROOT and flow.graph.is_upstream(seen, position):
            failed = bool(path) and path[0] == "error"  # it is there only when the block failed: no news
            if default is None and not failed and not flow.always_ran(seen, position):
                self._may_be_null(found, f"{self._wiring.called(seen)} is skipped", reader, pointer)
            return read(mode="last" if crossed else "current")
        loop = holder
        while loop != ROOT and self._wiring.kind(loop) != "loop":
            loop = self._wiring.parent[loop]
        if loop == ROOT:
            if block == reader.block:
                message = f"<{found.text}> reads the block itself, which is possible only inside a loop."
            else:
                message = f"<{found.text}>: {self._wiring.called(block)} does not run before this block."
            self._report.add("reference_not_upstream", pointer, message, block=reader.block)
            return None
        return read(region=self._places.region[loop], mode="previous")

    def _is_cleaned_up(self, holder: str, seen: str, crossed: bool, position: str | None, reader: Reader) -> bool:
        """Return whether the block is one that the reader's cleanup, or one around the reader, cleans up for."""
        around = self._around(reader)
        if holder == ROOT and CLEANUP_SUFFIX in around:
            return seen != ROOT
        return crossed and seen == position and seen + CLEANUP_SUFFIX in around

    def _may_be_null(self, found: Found, when: str, reader: Reader, pointer: str) -> None:
        message, hint = f"<{found.text}> is null when {when}.", f"Add a default: <{found.text} ?? ...>."
        self._report.add("reference_may_be_skipped", pointer, message, hint=hint, block=reader.block)

    def _positions(self, reader: Reader) -> dict[str, str | None]:
        """Return the block that holds the reader by container around it; None if it stands before all blocks."""
        if reader.container == ROOT:
            return {ROOT: reader.block}
        positions: dict[str, str | None] = {}
        at: str | None = None if reader.ahead else reader.block
        for container in (*self._around(reader), ROOT):
            positions[container] = at
            at = container.removesuffix(CLEANUP_SUFFIX)
        return positions

    def _check_field(self, block: str, path: Segments, found: Found, reader: Reader, pointer: str) -> bool:
        """Report a path that the block's output schema does not have, and return True. Reading it then fails unless the
        field exists at run time. `error` is part of every failed block's output; `output` may stand before the
        fields."""
        schema = self._schema(block)
        if schema is None or not path or path[0] == "error":
            return False
        properties = schema.get("properties")
        if path[0] == "output" and isinstance(properties, dict) and "output" not in properties:
            path = path[1:]
        for part in path:
            properties = schema.get("properties")
            if not isinstance(part, str) or not isinstance(properties, dict):
                return False
            if part not in properties and schema.get("additionalProperties"):
                return False
            if part not in properties:
                has = f"It has {', '.join(list(properties)[:12])}." if properties else "It has no fields."
                message = f'<{found.text}>: {self._wiring.called(block)} has no field "{part[:80]}".'
                hint = suggest(part, properties) or has
                self._report.add("reference_unknown_field", pointer, message, hint=hint, block=reader.block, field=part)
                return True
            schema = properties[part]
            if not isinstance(schema, dict):
                return False
        return False

    def _schema(self, block: str) -> dict[str, Any] | None:
        if block not in self._schemas:
            spec = self._wiring.specs[block]
            schema: dict[str, Any] | None = None
            if spec is not None and spec.container:
                fields = ("results", "last") if spec.container == "loop" else ("results",)
                schema = {"properties": {field: {} for field in fields}}
            elif (own := self._wiring.blocks[block].output_schema) is not None:
                schema = own
            elif spec is not None:
                schema = spec.output_from(self._wiring.blocks[block].params) if spec.output_from else spec.output
            self._schemas[block] = schema
        return self._schemas[block]

    def _lookup(self, segments: Segments) -> tuple[str | None, int]:
        """Block with the longest name (or id) the segments begin with, and how many of them it takes."""
        known = self._looked_up.get(segments)
        if known is None:
            known = None, 0
            name = ""
            for used in range(1, _texts_at(segments) + 1):
                name += unblanked(str(segments[used - 1]))
                if len(name) > self._name_length_max:
                    break
                blocks = self._names.get(name.lower())
                if blocks:
                    known = blocks[0], used
            self._looked_up[segments] = known
        return known

    def guess(self, found: Found, reader: Reader, pointer: str) -> None:
        """Report a reference that stays as text if its name is nearly that of a block."""
        if self._is_plain(found, 4) and (hint := self._meant(found)):
            message = f"<{found.text}> is kept as text, because no block has this name."
            self._report.add("reference_unknown", pointer, message, hint=hint, block=reader.block)

    def guess_alone(self, found: Found, reader: Reader, pointer: str) -> None:
        if self._guesses >= GUESSES_MAX or not self._is_plain(found, 4, fields=0):
            return
        self._guesses += 1
        name = closest(found.text, self._known_names())
        if name is not None and SequenceMatcher(None, found.text.lower(), normalize(name)).ratio() >= _ALIKE:
            message = f"<{found.text}> is kept as text, because no block has this name."
            hint = f"Did you mean <{normalize(name) if found.text.islower() else name}>?"
            self._report.add("reference_unknown", pointer, message, hint=hint, block=reader.block)

    def _computes(self, found: Found, path: Segments, reader: Reader, pointer: str) -> None:
        text = found.text.partition("??")[0]
        operator = _OPERATOR.search(text)
        operators = [_OPERATOR.search(part) for part in path if isinstance(part, str)]
        if operator is None or not any(operators) or not _OPERANDS.fullmatch(text):
            return
        name, rest = text[: operator.start()].strip(), text[operator.start() :].strip()
        message = f"<{found.text}> does not compute: a reference reads one value."
        hint = f"In an expression or a function block write <{name}> {rest}, and read its result."
        self._report.add("reference_computes", pointer, message, hint=hint, block=reader.block)

    def misspelt(self, found: Found, reader: Reader, pointer: str) -> bool:
        """Report a reference in code that does not parse because of it. Returns False if it does not look like a
        reference."""
        if not self._is_plain(found, 1, fields=0):
            if (parsed := parse(found.text)) is not None and not found.env:
                self._computes(found, parsed.segments[1:], reader, pointer)
            return False
        meant = self._meant(found)
        if not meant and "." not in found.text and "[" not in found.text:
            return False  # a tag of HTML in a text
        message = f"{self._wiring.called(reader.block)}: <{found.text}> reads a block that does not exist."
        self._report.add("reference_misspelt", pointer, message, hint=meant, block=reader.block)
        return True

    def _is_plain(self, found: Found, letters_min: int, fields: int = 1) -> bool:
        """Return whether it is a name followed by at least `fields` fields; a name alone may have no blanks."""
        parsed = parse(found.text)
        if found.env or parsed is None or len(parsed.segments) < 1 + fields:
            return False
        if len(parsed.segments) == 1 and _NAME.fullmatch(found.text) is None:
            return False
        first = str(parsed.segments[0])
        if len(first) < letters_min or normalize(first) in RESERVED:
            return False
        return self._lookup(parsed.segments)[0] is None

    def _meant(self, found: Found) -> str:
        if self._guesses >= GUESSES_MAX:
            return ""
        self._guesses += 1
        first = found.text[: min((at for at in map(found.text.find, ".[") if at >= 0), default=None)].strip()
        name = closest(first, self._known_names())
        if name is None:
            return ""
        name = normalize(name) if first.islower() else name
        return f"Did you mean <{name}{found.text[found.text.index(first) + len(first) :]}>?"

    def _known_names(self) -> list[str]:
        return [*(block.name for block in self._wiring.blocks.values()), *self._wiring.blocks, *RESERVED]

    def _check_default(self, found: Found, reader: Reader, pointer: str) -> None:
        head, mark, default = found.text.partition("??")
        parsed = parse(head) if mark else None
        if parsed is None:
            return
        first = normalize(str(parsed.segments[0]))
        if first in RESERVED or self._lookup(parsed.segments)[0] is not None:
            message = f"<{found.text}>: the default {default.strip()[:80]} is not JSON."
            self._report.add("reference_default_invalid", pointer, message, block=reader.block)

    def _around(self, reader: Reader) -> tuple[str, ...]:
        chain = self._chains.get(reader.container)
        if chain is None:
            chain = (reader.container, *self._wiring.above(reader.container))
            self._chains[reader.container] = chain
        return chain


def is_env_name(name: str, known: Collection[str]) -> bool:
    """Return whether `${name}` is a reference: if the name is set here, or written as environment names are. Other
    names may be JavaScript's own."""
    return name in known or _ENV_STYLE.fullmatch(name) is not None


def _texts_at(segments: Segments) -> int:
    """Return the number of leading segments that are texts: only those can be part of a name."""
    return next((i for i, part in enumerate(segments) if not isinstance(part, str)), len(segments))
