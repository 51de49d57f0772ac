"""Triggers, at which runs begin. A workflow without one begins at a `start` block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from msgspec import UNSET, UnsetType

from compiler.builder.step import Block, Options


class Start(Block):
    """The output is the input of the run."""

    def __init__(self, fields: Sequence[Mapping[str, Any]] | UnsetType = UNSET, **options: Unpack[Options]) -> None:
        self._begin("start", {"fields": fields}, options)


class Schedule(Block):
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
        own = {"cron": cron, "tz": tz, "input": input, "overlap": overlap, "catch_up": catch_up}
        self._begin("schedule", own, options)


class Webhook(Block):
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
        own = {"auth": auth, "respond": respond, "timeout_s": timeout_s, "secret_env": secret_env}
        self._begin("webhook", own | {"body_schema": body_schema, "headers": headers}, options)


class FormTrigger(Block):
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
        own = {"title": title, "text": text, "fields": fields, "submit": submit, "done": done, "wait_s": wait_s}
        self._begin("form_trigger", own, options)


class ChatTrigger(Block):
    """Starts a run for each message on a public page."""

    def __init__(
        self,
        *,
        title: str | UnsetType = UNSET,
        text: str | UnsetType = UNSET,
        placeholder: str | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        self._begin("chat_trigger", {"title": title, "text": text, "placeholder": placeholder}, options)
