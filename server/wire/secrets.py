"""The shapes of stored secrets. None holds a value but the one that sets it."""

from __future__ import annotations

from msgspec import Struct

from executor.topics.secrets import SecretView


class SecretSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`hosts`: where the value may be sent to: names, `*.example.com`, perhaps with a port. Without hosts it can be
    sent nowhere."""

    value: str
    hosts: tuple[str, ...] = ()


class SecretList(Struct, frozen=True):
    """By name. Values never leave the server."""

    secrets: list[SecretView]


class SecretDeleted(Struct, frozen=True):
    name: str
    deleted: bool


class SecretsResealed(Struct, frozen=True):
    """How many were encrypted with the present key."""

    resealed: int
