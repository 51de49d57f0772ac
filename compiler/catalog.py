"""The description of a block type: its params and output, for the compiler and the editor. The handler is in
`executor.blocks.types`.

`params` is a JSON Schema (object). Two keywords of ours steer the compiler:
  "x-weft": "expression"  the text is a JavaScript expression: references are bound as values
  "x-weft": "code"        the text is a program (same binding), in the `language` beside it: JavaScript, or "python"
  "x-weft": "literal"     the text, or all of an object or list, is left alone: no references are looked for
  "x-weft": "secret"      references, and `${NAME}` of stored secrets, which are allowed nowhere else
Everything else that is text may hold references.

For the editor, each param has a title, a description and "x-ui", an object the compiler does not look at:
  order     position in the form, from 1
  widget    text, longtext, code, json, number, boolean, select, keyvalues, schema, reference, connection, workflow
            (a stored one), fields (those of the object's own schema), tool_server (the same, with a check), or list (of
            items as in `items`); all of them also take a reference
  rows      lines to begin with
  language  of a code widget: javascript, or sql
  advanced  true: seldom needed
  handles   the param makes out-handles: "id" of each item, each of the "items", or the "value" itself
Beside "x-ui" stand "x-titles" and "x-when", labels of choices and conditions of fields:
see executor.blocks.types.params. "x-secret-when" limits "x-weft": "secret" to values of the params beside it.
"x-url" marks a text as a URL, or names the texts in an object that are: no secret may stand before its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, field

from compiler.plan import Effect, RunnerName

Params = Mapping[str, Any]
CodeKind = Literal["expression", "code", "python"]
CONNECTOR: Final = "connector."  # the types of connectors begin with it
EVENT: Final = "event."  # and those of triggers that poll a source

LOOP_MAX_DEFAULT: Final = 1_000  # iterations of a loop without a maximum; docs/reference/limits.md
CONCURRENCY_DEFAULT: Final = 100  # branches of a parallel at the same time
# Far more than a run executes (10,000 unless set): larger numbers are refused before anything is counted.
ITERATIONS_MAX: Final = 1_000_000
BRANCHES_MAX: Final = 100_000


class Case(Struct, frozen=True):
    """A named handle that a block's params create: a condition's case, a router's route, an approval's action."""

    id: str
    title: str = ""


class Finding(Struct, frozen=True):
    """A fault that a block type finds in its params. `code` is one of compiler.diagnostics, `pointer` leads into the
    params. `of_block`: the message continues after the name of the block (`has no else.`), and belongs to no field."""

    code: str
    pointer: str
    message: str
    hint: str = ""
    of_block: bool = False


class VariableWrite(Struct, frozen=True):
    """A workflow variable that params write: its name or a path into it. `pointer` leads into the params."""

    variable: str
    op: str
    pointer: str


class BlockSpec(Struct, frozen=True):
    """One block type.

    handles     fixed out-handles besides `error` (which every non-trigger block has); `cases` adds those from params
    cases       params -> named handles, in order. Must not raise on params of the wrong shape: return what can be read
    effect      none: pure; read: asks the world; write: may change it
    idempotent  a repeated attempt with the same idempotency key does no harm
    pauses      the handler suspends: the output comes later, from outside
    only_reads  params -> whether a block of effect `write` only asks the world, with these params. Must not raise
    repeatable  params -> whether a repeat does no harm with these params, where `idempotent` is not true for all of
                them: the other side recognizes it, or it changes nothing more. Must not raise
    ends_run    when it succeeds the run ends; of several that are ready one starts at a time
    continues   then another run of the workflow continues it, with the param `input` as its input
    inline      runs inside the run loop without a commit of its own (pure and quick)
    trigger     may start a run; has no in-edges
    by_document of a trigger: `input` of the document describes the input of its runs
    preferred   of several triggers, a run starts at this one if the caller names none
    undoes      the param with the id of a block, of the same type, which this one undoes when the run is cancelled:
                after `finally` of the trigger, with the steps of that block
    inside      the only kind of container that the block may be in, at any depth
    container   loop or parallel: has a body
    output      JSON Schema of the output; None if it depends on data (then unknown fields read as null)
    output_from params -> JSON Schema of the output, for blocks whose output follows from their params
    check       params -> faults that their schema cannot express, such as an unknown time zone. Pure; must not raise
    writes      params -> the workflow variables that they write. Must not raise
    addresses   places of params (`/to`) that hold mail addresses: a comma separates them if the author wrote it
    runners     the permitted values of `policy.runner`: where its work can be done
    attempts    default policy.retry.max_attempts
    heartbeat_timeout_ms  default of the policy; with None attempts need no heartbeat
    sentence    the description on a card: text with `{path}` for params, `{cases[0].when}`; a param that is not
                given counts as its default, a list shows its items, an object its keys, and `{fields[].name}` the names
                of all items. Of several sentences with ` | ` between them the first one with nothing empty in it counts
    icon        name of a picture the editor has
    """

    type: str
    title: str
    description: str
    category: Literal["trigger", "flow", "data", "action", "connector", "people", "annotation"]
    params: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    handles: tuple[str, ...] = ("out",)
    cases: Callable[[Params], tuple[Case, ...]] | None = None
    effect: Effect = "none"
    idempotent: bool = True
    pauses: bool = False
    only_reads: Callable[[Params], bool] | None = None
    repeatable: Callable[[Params], bool] | None = None
    ends_run: bool = False
    continues: bool = False
    inline: bool = False
    trigger: bool = False
    by_document: bool = False
    preferred: bool = False
    undoes: str = ""
    inside: Literal["loop"] | None = None
    container: Literal["loop", "parallel"] | None = None
    output: dict[str, Any] | None = None
    output_from: Callable[[Params], dict[str, Any] | None] | None = None
    check: Callable[[Params], tuple[Finding, ...]] | None = None
    writes: Callable[[Params], tuple[VariableWrite, ...]] | None = None
    addresses: tuple[str, ...] = ()
    runners: tuple[RunnerName, ...] = ("inline",)
    attempts: int = 1
    timeout_ms: int = 300_000
    heartbeat_timeout_ms: int | None = None
    sentence: str = ""
    icon: str = "block"


def may_repeat(spec: BlockSpec, params: Params) -> bool:
    """Return whether the block may run again after an earlier attempt that may have had its effect."""
    if spec.effect != "write" or spec.idempotent:
        return True
    return any(holds(params) for holds in (spec.only_reads, spec.repeatable) if holds is not None)


class Catalog(Protocol):
    """The block types known to a compile, and the syntax check of the expression language."""

    def get(self, type: str) -> BlockSpec | None: ...

    def types(self) -> list[str]: ...

    def check_syntax(self, source: str, kind: CodeKind) -> str | Finding | None:
        """None when the JavaScript parses (references already replaced), else the engine's message, or what is missing
        to run it. Never runs it."""
