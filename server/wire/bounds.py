"""Bounds of names and numbers that clients send, each written once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from executor.store.rows import VERSION_MAX

DraftName = Annotated[str, Meta(max_length=200)]
PersonName = Annotated[str, Meta(max_length=200)]
ShortText = Annotated[str, Meta(max_length=500)]
Version = Annotated[int, Meta(ge=1, le=VERSION_MAX)]
