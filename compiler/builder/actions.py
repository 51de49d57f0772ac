"""Blocks that do something: call, compute, send, store, wait. Params that are not arguments here go into `params`.

`Text` and `Number` may hold references: `"<input.amount>"`, or `ref("$.amount")`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, Unpack

from msgspec import UNSET, UnsetType

from compiler.builder.step import Block, Options
from compiler.builder.values import Ref

Text: TypeAlias = str | Ref
Number: TypeAlias = float | str | Ref


class Http(Block):
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
        own = {"url": url, "method": method, "headers": headers, "query": query, "body": body, "connection": connection}
        more = {"timeout_s": timeout_s, "fail_on_status": fail_on_status, "save_file": save_file}
        self._begin("http", own | more, options)


class HitEndpoint(Http):
    """`Http` by another name."""


class SendEmail(Block):
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
        own = {"to": to, "subject": subject, "body": body, "cc": cc, "attachments": attachments, "sender": sender}
        self._begin("email", own, options)


class Sleep(Block):
    """Waits `seconds`, or `until` a time such as `2027-01-31T09:00:00Z`, without memory and through restarts."""

    def __init__(
        self, seconds: Number | UnsetType = UNSET, *, until: Text | UnsetType = UNSET, **options: Unpack[Options]
    ) -> None:
        self._begin("wait", {"seconds": seconds, "until": until}, options)


class Set(Block):
    """Makes a value: any JSON, with references. `first`: a list; the value is the first in it that is not null."""

    def __init__(
        self, value: Any = UNSET, *, first: Sequence[Any] | UnsetType = UNSET, **options: Unpack[Options]
    ) -> None:
        self._begin("set", {"value": value, "first": first}, options)


class Variables(Block):
    """Changes workflow variables: a list of `{"name", "op", "value"}`."""

    def __init__(self, assign: Any, **options: Unpack[Options]) -> None:
        self._begin("variables", {"assign": assign}, options)


class Function(Block):
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
        own = {"code": code, "language": language, "timeout_s": timeout_s, "files": files}
        self._begin("function", own, options)


class Sql(Block):
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
        own = {"database": database, "query": query, "parameters": parameters, "read_only": read_only}
        self._begin("sql", own | {"max_rows": max_rows, "timeout_s": timeout_s}, options)


class File(Block):
    """Makes a file of a content. Output: the file."""

    RENAMED: ClassVar[Mapping[str, str]] = {"file_name": "name"}

    def __init__(
        self,
        file_name: Text,
        content: Any,
        *,
        format: Literal["text", "csv", "base64"] | UnsetType = UNSET,
        media_type: Text | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        own = {"file_name": file_name, "content": content, "format": format, "media_type": media_type}
        self._begin("file", own, options)


class RunWorkflow(Block):
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
        own = {"workflow": workflow, "input": input, "version": version, "trigger": trigger, "definition": definition}
        self._begin("run_workflow", own, options)


class Response(Block):
    """Ends the run with this response."""

    def __init__(
        self,
        body: Any = UNSET,
        *,
        status: Number | UnsetType = UNSET,
        headers: Mapping[str, Any] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin("response", {"body": body, "status": status, "headers": headers}, options)


class ContinueAsNew(Block):
    """Ends the run, and a new run of this workflow continues it with this input and an empty journal."""

    def __init__(self, input: Any = UNSET, **options: Unpack[Options]) -> None:
        self._begin("continue_as_new", {"input": input}, options)


class Agent(Block):
    """A language model that answers, and calls tools to do so. `output_schema` is that of its answer."""

    def __init__(
        self,
        model: str,
        prompt: Any = UNSET,
        *,
        system: Text | UnsetType = UNSET,
        messages: Any = UNSET,
        tools: Sequence[Mapping[str, Any]] | UnsetType = UNSET,
        output_schema: Mapping[str, Any] | UnsetType = UNSET,
        memory: Any = UNSET,
        max_rounds: int | UnsetType = UNSET,
        budget_tokens: int | UnsetType = UNSET,
        budget_usd: float | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        own = {"model": model, "prompt": prompt, "system": system, "messages": messages, "tools": tools}
        bounds = {"max_rounds": max_rounds, "budget_tokens": budget_tokens, "budget_usd": budget_usd}
        self._begin("agent", own | {"output_schema": output_schema, "memory": memory} | bounds, options)


class Note(Block):
    """A text on the canvas. It does not run."""

    def __init__(self, text: str | UnsetType = UNSET, **options: Unpack[Options]) -> None:
        self._begin("note", {"text": text}, options)
