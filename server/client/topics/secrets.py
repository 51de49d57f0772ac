"""Stored secrets and connections. No answer has a value or a credential in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        ConnectionDeleted,
        ConnectionList,
        ConnectionSpec,
        ConnectionUses,
        ConnectionView,
        SecretDeleted,
        SecretList,
        SecretsResealed,
        SecretView,
        SignIn,
    )


class Secrets:
    """`/api/secrets`."""

    @call
    def secrets(self) -> Call[SecretList]:
        """List secrets by name, without their values."""
        return Call("GET", "/api/secrets")

    @call
    def put_secret(
        self, name: str, value: str, hosts: Sequence[str] = (), places: Sequence[str] = ()
    ) -> Call[SecretView]:
        """A first or a new value. `hosts`: where it may be sent to; `places`: where in a request it may stand, such as
        `header:Authorization`, or anywhere."""
        body = {"value": value, "hosts": list(hosts), "places": list(places)}
        return Call("PUT", "/api/secrets/{name}", (name,), body=body)

    @call
    def delete_secret(self, name: str) -> Call[SecretDeleted]:
        """Runs that read it fail from now on."""
        return Call("DELETE", "/api/secrets/{name}", (name,))

    @call
    def rekey_secrets(self, *, grace_s: int = 7 * 86_400) -> Call[SecretsResealed]:
        """Encrypt with the present key the values that were encrypted with an older one."""
        return Call("POST", "/api/secrets/rekey", params={"grace_s": grace_s})


class Connections:
    """`/api/connections`, `/api/oauth/code`."""

    @call
    def connections(self) -> Call[ConnectionList]:
        """List connections by name. `redirect_uri` is the address to register at OAuth providers."""
        return Call("GET", "/api/connections")

    @call
    def put_connection(self, name: str, spec: ConnectionSpec) -> Call[ConnectionView]:
        """Add or replace one: `{"kind": ..., "hosts": [...], "secret": ...}`, and the members of its kind."""
        return Call("PUT", "/api/connections/{name}", (name,), body=dict(spec))

    @call
    def delete_connection(self, name: str) -> Call[ConnectionDeleted]:
        """Runs that use it fail from now on."""
        return Call("DELETE", "/api/connections/{name}", (name,))

    @call
    def connection_uses(self, name: str) -> Call[ConnectionUses]:
        """The active versions and drafts that name it."""
        return Call("GET", "/api/connections/{name}/uses", (name,))

    @call
    def connect(self, name: str) -> Call[SignIn]:
        """The `url` where a person signs in to the service."""
        return Call("POST", "/api/connections/{name}/connect", (name,))

    @call
    def connected(
        self, state: str, *, code: str | None = None, error: str | None = None, iss: str | None = None
    ) -> Call[ConnectionView]:
        """End a sign-in with the parameters of the address to which the provider sent the browser back."""
        return Call("POST", "/api/oauth/code", body=present(state=state, code=code, error=error, iss=iss))
