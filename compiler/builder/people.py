"""Blocks that wait for people, and for messages of programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Unpack

from msgspec import UNSET, UnsetType

from compiler.builder.actions import Number, Text
from compiler.builder.step import Block, Options


class Approval(Block):
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
        expires_in_s: Number | UnsetType = UNSET,
        on_expire: str | UnsetType = UNSET,
        notify: Mapping[str, Any] | UnsetType = UNSET,
        by: Sequence[str] | UnsetType = UNSET,
        not_starter: bool | UnsetType = UNSET,
        fail_on: Sequence[str] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        own = {"title": title, "text": text, "show": show, "fields": fields, "actions": actions, "notify": notify}
        expiry = {"expires_in_s": expires_in_s, "on_expire": on_expire}
        self._begin("approval", own | expiry | {"by": by, "not_starter": not_starter, "fail_on": fail_on}, options)


class Form(Block):
    """Waits for a person to fill in `fields`, a JSON Schema."""

    def __init__(
        self,
        fields: Mapping[str, Any],
        *,
        title: Text | UnsetType = UNSET,
        text: Text | UnsetType = UNSET,
        show: Any = UNSET,
        submit: str | UnsetType = UNSET,
        expires_in_s: Number | UnsetType = UNSET,
        on_expire: str | UnsetType = UNSET,
        notify: Mapping[str, Any] | UnsetType = UNSET,
        **options: Unpack[Options],
    ) -> None:
        own = {"fields": fields, "title": title, "text": text, "show": show, "submit": submit, "notify": notify}
        self._begin("form", own | {"expires_in_s": expires_in_s, "on_expire": on_expire}, options)


class Signal(Block):
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
        own = {"signal": signal, "correlation": correlation, "expires_in_s": expires_in_s, "on_expire": on_expire}
        self._begin("signal", own, options)
