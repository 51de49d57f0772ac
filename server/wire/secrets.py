"""The shapes of stored secrets. Only the shape that sets a value holds one."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from executor.service.topics.secrets import SecretView


class SecretSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`hosts`: where the value may be sent to: names, `*.example.com`, perhaps with a port. Without hosts it can be
    sent nowhere. `places`: where in a request it may stand: `header:NAME`, `query:NAME`, `path`, `body`. Without places
    it may stand anywhere."""

    value: str
    hosts: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


class SecretList(Struct, frozen=True):
    """The secrets, by name. Values never leave the server."""

    secrets: list[SecretView]


class SecretDeleted(Struct, frozen=True):
    name: str
    deleted: bool


class RekeyQuery(Struct, frozen=True):
    grace_s: Annotated[
        int,
        Meta(ge=0, le=90 * 86_400, description="How long what was made with the key before still counts, in seconds."),
    ] = 7 * 86_400


class SecretsResealed(Struct, frozen=True):
    """The number of secrets that were encrypted with the present key, and of open waits with a new link."""

    resealed: int
    relinked: int
