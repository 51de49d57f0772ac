"""Block types by name: triggers, actions, waits for people, ways and containers. Params that are not arguments here go
into `params`.

`Text` and `Number` may hold references: `"<input.amount>"`, or `ref("$.amount")`. An argument that is not given is not
in the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

from msgspec import UNSET, UnsetType

from compiler.builder.errors import BuildError
from compiler.builder.step import Block, Container, Options, Reference, Step, as_step
from compiler.builder.tools import Handoff, IsTool, called, entries, team

Text: TypeAlias = str | Reference
Number: TypeAlias = float | str | Reference
Then: TypeAlias = Step | Sequence[Step] | None


class Start(Block, type="start"):
    """The output is the input of the run."""

    def __init__(self, fields: Sequence[Mapping[str, Any]] | UnsetType = UNSET, **options: Unpack[Options]) -> None:
        self._begin(locals(), options)


class Schedule(Block, type="schedule"):
    """Starts runs at scheduled times: five fields of cron, or `@daily`."""

    def __init__(
        self,
        cron: str,
        *,
        tz: str | UnsetType = UNSET,
        input: Mapping[str, Any] | UnsetType = UNSET,
        overlap: Literal["skip", "queue", "allow"] | UnsetType = UNSET,
        catch_up: Literal["one", "none", "all"] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Webhook(Block, type="webhook"):
    """Starts a run for each request."""

    def __init__(
        self,
        *,
        auth: Literal["hmac", "github", "token", "none"] | UnsetType = UNSET,
        respond: Literal["immediate", "run"] | UnsetType = UNSET,
        timeout_s: float | UnsetType = UNSET,
        secret_env: str | UnsetType = UNSET,
        body_schema: Mapping[str, Any] | UnsetType = UNSET,
        headers: Sequence[str] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class FormTrigger(Block, type="form_trigger"):
    """Starts a run for each submission of a public page."""

    def __init__(
        self,
        *,
        title: str | UnsetType = UNSET,
        text: str | UnsetType = UNSET,
        fields: Mapping[str, Any] | UnsetType = UNSET,
        submit: str | UnsetType = UNSET,
        done: str | UnsetType = UNSET,
        wait_s: float | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class ChatTrigger(Block, type="chat_trigger"):
    """Starts a run for each message on a public page."""

    def __init__(
        self,
        *,
        title: str | UnsetType = UNSET,
        text: str | UnsetType = UNSET,
        placeholder: str | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Http(Block, type="http"):
    """A request. Output: `{status, headers, body, encoding, url, ms}`."""

    def __init__(
        self,
        url: Text,
        *,
        method: Text | UnsetType = UNSET,
        headers: Mapping[str, Any] | UnsetType = UNSET,
        query: Mapping[str, Any] | UnsetType = UNSET,
        body: Any = UNSET,
        connection: str | UnsetType = UNSET,
        timeout_s: Number | UnsetType = UNSET,
        fail_on_status: bool | UnsetType = UNSET,
        save_file: bool | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class SendEmail(Block, type="email"):
    """A mail. Without mail settings of the server it is written to its log."""

    RENAMED: ClassVar[Mapping[str, str]] = {"sender": "from"}

    def __init__(
        self,
        to: Text | Sequence[str],
        subject: Text,
        body: Any = UNSET,
        *,
        cc: Text | Sequence[str] | UnsetType = UNSET,
        attachments: Any = UNSET,
        sender: Text | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Sleep(Block, type="wait"):
    """Waits `seconds`, or `until` a time such as `2027-01-31T09:00:00Z`, without memory and through restarts."""

    def __init__(
        self, seconds: Number | UnsetType = UNSET, *, until: Text | UnsetType = UNSET, **options: Unpack[Options]
    ) -> None:
        self._begin(locals(), options)


class Set(Block, type="set"):
    """Makes a value: any JSON, with references. `first`: a list; the value is the first in it that is not null."""

    def __init__(
        self, value: Any = UNSET, *, first: Sequence[Any] | UnsetType = UNSET, **options: Unpack[Options]
    ) -> None:
        self._begin(locals(), options)


class Variables(Block, type="variables"):
    """Changes workflow variables: a list of `{"name", "op", "value"}`."""

    def __init__(self, assign: Any, **options: Unpack[Options]) -> None:
        self._begin(locals(), options)


class Function(Block, type="function"):
    """The body of a function in JavaScript or Python, which runs in the sandbox. Output: `{result, stdout}`."""

    def __init__(
        self,
        code: str,
        *,
        language: Literal["javascript", "python"] | UnsetType = UNSET,
        timeout_s: Number | UnsetType = UNSET,
        files: Literal["value", "text", "base64"] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Sql(Block, type="sql"):
    """One statement for a database. Output: `{rows, columns, count, cut, affected, ms}`."""

    def __init__(
        self,
        database: Text,
        query: str,
        *,
        parameters: Mapping[str, Any] | UnsetType = UNSET,
        read_only: bool | UnsetType = UNSET,
        max_rows: Number | UnsetType = UNSET,
        timeout_s: Number | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class File(Block, type="file"):
    """Makes a file of a content, or reads one. Output: the file, or `{result}`."""

    RENAMED: ClassVar[Mapping[str, str]] = {"file_name": "name"}

    def __init__(
        self,
        file_name: Text | UnsetType = UNSET,
        content: Any = UNSET,
        *,
        operation: Literal["make", "read"] | UnsetType = UNSET,
        read_as: Literal["text", "table", "json", "xml", "fields", "markdown", "html", "base64"] | UnsetType = UNSET,
        select: Mapping[str, Any] | UnsetType = UNSET,
        format: Literal["text", "csv", "base64"] | UnsetType = UNSET,
        media_type: Text | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class RunWorkflow(Block, type="run_workflow"):
    """A child run of a stored workflow, or of a document. Output: that of the child."""

    def __init__(
        self,
        workflow: Text | UnsetType = UNSET,
        *,
        input: Any = UNSET,
        version: Number | UnsetType = UNSET,
        trigger: Text | UnsetType = UNSET,
        definition: Any = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Response(Block, type="response"):
    """Ends the run with this response."""

    def __init__(
        self,
        body: Any = UNSET,
        *,
        status: Number | UnsetType = UNSET,
        headers: Mapping[str, Any] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class ContinueAsNew(Block, type="continue_as_new"):
    """Ends the run, and a new run of this workflow continues it with this input and an empty journal."""

    def __init__(self, input: Any = UNSET, **options: Unpack[Options]) -> None:
        self._begin(locals(), options)


class Agent(Block, type="agent"):
    """A language model that answers, and calls tools to do so: steps, workflows, and those of documents, such as
    `{"name": "post", "block": "connector.slack", …}`. `output_schema` is that of its answer."""

    def __init__(
        self,
        model: str,
        prompt: Any = UNSET,
        *,
        system: Text | UnsetType = UNSET,
        messages: Any = UNSET,
        tools: Sequence[Mapping[str, Any] | IsTool] | UnsetType = UNSET,
        handoffs: Sequence[Mapping[str, Any] | Handoff] | UnsetType = UNSET,
        output_schema: Mapping[str, Any] | UnsetType = UNSET,
        memory: Any = UNSET,
        max_rounds: int | UnsetType = UNSET,
        budget_tokens: int | UnsetType = UNSET,
        budget_usd: float | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        given = dict(locals())
        if not isinstance(handoffs, UnsetType):
            given["handoffs"] = [one.params if isinstance(one, Handoff) else one for one in handoffs]
            others = [one for one in handoffs if isinstance(one, Handoff)]
            if others:
                tools = team([] if isinstance(tools, UnsetType) else tools, others)
        self.calls = [] if isinstance(tools, UnsetType) else list(called(tools))
        self._begin(given | {"tools": UNSET if isinstance(tools, UnsetType) else entries(tools)}, options)


class Note(Block, type="note"):
    """A text on the canvas. It does not run."""

    def __init__(self, text: str | UnsetType = UNSET, **options: Unpack[Options]) -> None:
        self._begin(locals(), options)


class Approval(Block, type="approval"):
    """The decision of a person. Each action is an exit: `on={"reject": SendEmail(...)}`; actions without a step
    continue at the next one."""

    def __init__(
        self,
        title: Text | UnsetType = UNSET,
        *,
        text: Text | UnsetType = UNSET,
        show: Any = UNSET,
        fields: Mapping[str, Any] | UnsetType = UNSET,
        actions: Sequence[str] | UnsetType = UNSET,
        notify: Mapping[str, Any] | UnsetType = UNSET,
        expires_in_s: Number | UnsetType = UNSET,
        on_expire: str | UnsetType = UNSET,
        remind_before_s: Number | UnsetType = UNSET,
        by: Sequence[str] | UnsetType = UNSET,
        not_starter: bool | UnsetType = UNSET,
        fail_on: Sequence[str] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Form(Block, type="form"):
    """Waits for a person to fill in `fields`, a JSON Schema."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        *,
        title: Text | UnsetType = UNSET,
        text: Text | UnsetType = UNSET,
        show: Any = UNSET,
        submit: str | UnsetType = UNSET,
        notify: Mapping[str, Any] | UnsetType = UNSET,
        expires_in_s: Number | UnsetType = UNSET,
        on_expire: str | UnsetType = UNSET,
        remind_before_s: Number | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Signal(Block, type="signal"):
    """Waits for a signal of this name. Output: `{payload, name, correlation, received_at, received_by}`."""

    RENAMED: ClassVar[Mapping[str, str]] = {"signal": "name"}

    def __init__(
        self,
        signal: Text,
        *,
        correlation: Number | UnsetType = UNSET,
        expires_in_s: Number | UnsetType = UNSET,
        on_expire: str | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)


class Case:
    """One way of a `Branch`: the first case whose expression `when` is true is taken; a case without `when` is the else
    case, the last. `then` is its step; if it is None, the case leads to the next step of the sequence."""

    def __init__(
        self, id: str, when: str | bool | UnsetType = UNSET, then: Then = None, *, title: str | UnsetType = UNSET
    ) -> None:
        self.id = id
        self.then = None if then is None else as_step(then)
        parts = {"id": id, "title": title, "when": when}
        self.document = {key: value for key, value in parts.items() if value is not UNSET}


class Branch(Block, type="condition"):
    """A condition: `Branch(when="<input.n> > 9", then=Http(...), otherwise=Set(...))`, or any number of cases. A case
    without a step leads to the next step of the sequence; `End()` ends its path."""

    def __init__(
        self,
        *cases: Case,
        when: str | UnsetType = UNSET,
        then: Then = None,
        otherwise: Then = None,
        **options: Unpack[Options],
    ) -> None:
        if when is not UNSET:
            cases = (*cases, Case("then", when, then), Case("else", then=otherwise))
        self._begin({"cases": [case.document for case in cases]}, options)
        if when is UNSET and (then is not None or otherwise is not None):
            raise BuildError(f"{self!r} has steps and no condition.", "Write when=, or cases.")
        if not cases:
            raise BuildError(f"{self!r} has no case.", 'Write when="<input.n> > 9" and then=, or cases.')
        self.on = {case.id: case.then for case in cases if case.then is not None} | self.on


class Router(Block, type="router"):
    """Compares a value: `Router("<input.kind>", on={"a": Http(...), "b": Set(...)})`. The ways are those of
    `routes`, or without it those of `on`; `default` names the one of all other values."""

    def __init__(
        self,
        value: Any = UNSET,
        *,
        routes: Sequence[Mapping[str, Any]] | UnsetType = UNSET,
        default: str | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        if routes is UNSET:
            routes = [{"id": way, "equals": way} for way in options.get("on", {}) if way != default]
        self._begin(locals(), options)


class Loop(Container, type="loop"):
    """Repeats its steps: one of `count`, `each` (items), `while_`, `until` and `do_while` (expressions).
    `finally_`: the cleanup, steps that run once when the loop has ended, also if it failed or was cancelled."""

    MODES: ClassVar[Mapping[str, tuple[str, str]]] = {
        "count": ("for", "count"),
        "each": ("each", "items"),
        "while_": ("while", "condition"),
        "until": ("until", "condition"),
        "do_while": ("do_while", "condition"),
    }

    def __init__(
        self,
        *steps: Step | Sequence[Step],
        count: Number | UnsetType = UNSET,
        each: Any = UNSET,
        while_: str | UnsetType = UNSET,
        until: str | UnsetType = UNSET,
        do_while: str | UnsetType = UNSET,
        max: Number | UnsetType = UNSET,
        on_max: str | UnsetType = UNSET,
        results: str | UnsetType = UNSET,
        finally_: Then = None,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)
        self._hold(steps, finally_)


class Each(Container, type="parallel"):
    """Runs its steps for each of `items` side by side, or `count` times; at most `concurrency` at the same time.
    Output: `results`, in the order of the items. `finally_`: as in `Loop`, once after all of them."""

    MODES: ClassVar[Mapping[str, tuple[str, str]]] = {"items": ("each", "items"), "count": ("count", "count")}

    def __init__(
        self,
        *steps: Step | Sequence[Step],
        items: Any = UNSET,
        count: Number | UnsetType = UNSET,
        concurrency: Number | UnsetType = UNSET,
        on_branch_error: str | UnsetType = UNSET,
        results: str | UnsetType = UNSET,
        finally_: Then = None,
        **options: Unpack[Options],
    ) -> None:
        self._begin(locals(), options)
        self._hold(steps, finally_)


class Break(Block, type="break"):
    """Inside a loop: this iteration is the last one."""

    def __init__(self, **options: Unpack[Options]) -> None:
        self._begin({}, options)
