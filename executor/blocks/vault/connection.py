"""A connection: a named credential of a service, and how it goes into a request. It is a row of `secrets` whose name
has a prefix and whose sealed value is this struct: it is sealed, sealed again, copied and versioned as secrets are.

Processes compare the version of the row before they write: of two changes of the same version one is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final, Literal
from urllib.parse import quote

import msgspec
from msgspec import Struct

from executor.blocks.http.binding import Opened, Redact, Rules, basic, bound_to, derived
from executor.blocks.http.handles import written_as
from executor.blocks.http.parts import SIGN_IN
from executor.blocks.vault.sealing import Keys
from executor.errors import BlockError
from executor.kernel.store.topics.secrets import SecretRow

Kind = Literal["oauth2_code", "oauth2_client", "api_key", "basic", "bearer", "ssh"]
State = Literal["ready", "sign_in", "sign_in_again", "unreadable"]
KINDS: Final[tuple[Kind, ...]] = ("oauth2_code", "oauth2_client", "api_key", "basic", "bearer", "ssh")
PREFIX: Final = "connection:"  # no `${NAME}` can be written like that
NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
PRIVATE_KEY: Final = "-----BEGIN "
# A line of a host key: its fingerprint, or the key as in a file of OpenSSH.
HOST_KEY: Final = re.compile(r"SHA256:[\w+/]{43}=?|(ssh-|ecdsa-sha2-)[a-z0-9-]{3,20} [\w+/]{40,}={0,2}( .*)?", re.A)


class Provider(Struct, frozen=True, omit_defaults=True):
    """An OAuth 2 server. `client_auth`: where the client's secret is sent. `parameters`: more of them for the address
    at which people sign in, such as `access_type=offline`. `pkce`: false if the server does not support it."""

    token_url: str
    client_id: str
    authorize_url: str = ""
    scopes: str = ""
    issuer: str = ""
    client_auth: Literal["body", "header"] = "body"
    parameters: dict[str, str] = {}
    pkce: bool = True


class Tokens(Struct, frozen=True, omit_defaults=True):
    """The tokens of a sign-in. `expires_at_ms` is by our clock, or None if the provider gave no time."""

    access: str
    refresh: str = ""
    at_ms: int = 0
    expires_at_ms: int | None = None


class Pending(Struct, frozen=True):
    """A sign-in that was begun. `state` and `by`, the person who began it, are hashes."""

    state: str
    by: str
    verifier: str
    redirect_uri: str
    until_ms: int


class Lease(Struct, frozen=True):
    """The right to ask for a new token."""

    by: str
    until_ms: int


class Connection(Struct, frozen=True, omit_defaults=True):
    """A stored connection. `secret`: the API key, token, password, or the secret of the OAuth client. `where`, `name`
    and `prefix` describe where an API key goes. `problem`: why people have to sign in again. `check_url`: what a test
    requests by GET, where there is no sign-in check of a service. Of SSH, `secret` is the password or the private key,
    which `passphrase` opens, and `host_key` has the keys of the server, one a line."""

    kind: Kind
    secret: str = ""
    username: str = ""
    where: Literal["header", "query"] = "header"
    name: str = "Authorization"
    prefix: str = ""
    provider: Provider | None = None
    tokens: Tokens | None = None
    problem: str = ""
    pending: Pending | None = None
    lease: Lease | None = None
    check_url: str = ""
    passphrase: str = ""
    host_key: str = ""

    @property
    def renews(self) -> bool:
        return self.provider is not None

    @property
    def state(self) -> State:
        if self.problem:
            return "sign_in_again"
        return "sign_in" if self.kind == "oauth2_code" and self.tokens is None else "ready"

    @property
    def value(self) -> str:
        """The part that is sent to the service: of one that renews, its token, which must be there. The passphrase of
        a private key follows in a line of its own."""
        if not self.renews:
            return f"{self.secret}\n{self.passphrase}" if self.passphrase else self.secret
        assert self.tokens is not None
        return self.tokens.access

    @property
    def place(self) -> tuple[Literal["header", "query"], str, str]:
        """The kind of the value's place in a request, the name there, and its prefix."""
        if self.kind == "api_key":
            return self.where, self.name, self.prefix
        return "header", "Authorization", "" if self.kind == "basic" else "Bearer "

    def values(self) -> Iterator[tuple[str, str]]:
        yield "secret", self.secret
        yield "passphrase", self.passphrase
        if self.tokens is not None:
            yield "access", self.tokens.access
            yield "refresh", self.tokens.refresh
        if self.pending is not None:
            yield "verifier", self.pending.verifier


class Credential(Struct, frozen=True):
    """The credential for a request. `value` is a handle, which clients open within `bound`, by `opened`; `redact`
    removes secrets from an answer."""

    connection: str
    hosts: tuple[str, ...]
    kind: Kind
    value: str
    username: str
    where: Literal["header", "query"]
    name: str
    prefix: str
    renews: bool
    opened: Opened
    redact: Redact
    host_key: str = ""

    def bound(self) -> AbstractContextManager[None]:
        """Let clients send the credential to its hosts, in its place, inside this context."""
        rules = Rules(self.hosts, (f"{self.where}:{self.name}", SIGN_IN))
        return bound_to({PREFIX + self.connection: rules}, None, self.opened, self.redact)

    def put(self, url: str, headers: dict[str, str]) -> str:
        """Return the URL with the credential; or else put it into `headers`, in the place of one of the same name.
        Raises BlockError(params_invalid)."""
        if self.kind == "ssh":
            message = f"the connection {self.connection} signs in by SSH, and cannot be sent in a request"
            raise BlockError(message, code="params_invalid", retryable=False)
        if self.where == "query":
            base, mark, fragment = url.partition("#")
            joint = "&" if "?" in base else "?"
            return f"{base}{joint}{quote(self.name, safe='')}={written_as(self.value, 'f')}{mark}{fragment}"
        for name in [name for name in headers if name.lower() == self.name.lower()]:
            del headers[name]
        if self.kind == "basic":
            headers[self.name] = derived(f"{self.username}:{self.value}", basic)
        else:
            headers[self.name] = self.prefix + self.value
        return url


def is_connection(row: SecretRow) -> bool:
    return row.name.startswith(PREFIX)


def opened(keys: Keys, row: SecretRow) -> Connection:
    """Raises BlockError(secret_unreadable)."""
    return msgspec.json.decode(keys.open(row), type=Connection)


def needs_sign_in(keys: Keys, row: SecretRow) -> bool:
    """Return whether no one has signed in, or has to again. A row that `keys` do not open is another problem."""
    try:
        return opened(keys, row).state in ("sign_in", "sign_in_again")
    except BlockError:
        return False


def sealed(keys: Keys, row: SecretRow, connection: Connection) -> SecretRow:
    version = row.version + 1
    text = msgspec.json.encode(connection).decode()
    return msgspec.structs.replace(row, version=version, sealed=keys.seal(row.name, version, text), key_id=keys.id)
