"""The shapes of what the server says about itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from compiler.diagnostics import Diagnostic
from executor.topics.environment import EnvName


class Problem(Struct, frozen=True):
    """A refusal, RFC 9457. More members by code."""

    type: str
    title: str
    status: int
    code: Annotated[str, Meta(description="Stable code for programs.")]
    detail: Annotated[str, Meta(description="Description for people.")]
    pointer: Annotated[str, Meta(description="RFC 6901 pointer into the request body.")] | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    diagnostics: list[Diagnostic] | UnsetType = UNSET


class Health(Struct, frozen=True):
    status: Literal["ok"]


class Version(Struct, frozen=True):
    """`version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from a
    browser with a session, which can sign out."""

    version: str
    signed_in: bool


class EnvNames(Struct, frozen=True):
    env: list[EnvName]


class Example(Struct, frozen=True):
    name: str
    title: str
    description: str
    document: dict[str, Any]


class Examples(Struct, frozen=True):
    examples: list[Example]
