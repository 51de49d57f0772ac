"""A test of a connection: the sign-in check of its service is requested with its credential, by the rules of an `http`
block; one for SSH signs in. The credential is in no part of the result."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import orjson
from msgspec import Struct
from msgspec.structs import replace

from compiler.catalog import CONNECTOR
from executor.blocks.connectors.block import ConnectorBlock, refused_by
from executor.blocks.connectors.document import Connector, SignInCheck
from executor.blocks.connectors.pages import at
from executor.blocks.http.binding import may_go_to
from executor.blocks.types import sftp
from executor.blocks.types.client import decoded, plain, status_error
from executor.blocks.types.connected import signed_in_with
from executor.blocks.vault.connection import Connection, Credential
from executor.blocks.vault.oauth import known_providers
from executor.errors import BlockError
from executor.kernel.handler import needs
from executor.kernel.values.payload import render
from executor.service.parts import Parts

CHECK_S: Final = 10.0  # of one request: a person waits for it
ALL_S: Final = 30.0  # with a new token, if the first is refused
TESTS_MAX: Final = 4  # per process at the same time
ANSWER_BYTES_MAX: Final = 256 * 1024
Outcome = Literal["ok", "refused", "hosts", "not_ready", "unreachable", "timeout", "failed", "nothing"]
_OUTCOMES: Final[dict[str, Outcome]] = {
    "service_refused": "refused", "secret_host_refused": "hosts", "connection_needs_sign_in": "not_ready",
    "secret_unreadable": "not_ready", "oauth_refused": "not_ready", "http_connection": "unreachable",
    "address_refused": "unreachable", "http_timeout": "timeout", "sftp_connection": "unreachable",
    "sftp_timeout": "timeout",
}  # fmt: skip


class ConnectionTest(Struct, frozen=True):
    """`who`: the name in the answer; `called`: the request. `outcome`: refused if the service did not accept the
    credential; hosts if it may not go there; not_ready without a sign-in; nothing if there is nothing to call."""

    outcome: Outcome
    ok: bool = False
    status: int | None = None
    who: str = ""
    message: str = ""
    hint: str = ""
    called: str = ""
    took_ms: int = 0


class ConnectionTested(Struct, frozen=True):
    """The last test of a connection as it is stored."""

    at_ms: int
    result: ConnectionTest


NOTHING: Final = ConnectionTest("nothing", message="there is nothing to call", hint="enter an address to check")


class Asked(Struct, frozen=True):
    """The request of a test, or with `ssh` a sign-in at the server that `url` is. `service` reports failure in its own
    way; `typed`: it is the address of the connection."""

    url: str
    check: SignInCheck
    service: Connector | None = None
    typed: bool = False
    ssh: bool = False

    @property
    def line(self) -> str:
        return f"{'SSH' if self.ssh else self.check.method} {self.url}"


def asked_of(
    parts: Parts, connection: Connection, hosts: Sequence[str], service: str = "", base_url: str = ""
) -> Asked | None:
    """Return the check of `service`, the connector of a block with this `base_url`; or else its own address; or else
    the check of a service on its hosts."""
    if connection.kind == "ssh":
        return next((Asked(host, SignInCheck(""), ssh=True) for host in hosts if not re.search(r"\*|://", host)), None)
    blocks = [parts.registry.handler(type) for type in parts.registry.types() if type.startswith(CONNECTOR)]
    found = [
        Asked(base.rstrip("/") + one.sign_in.path, one.sign_in, one)
        for one in (block.connector for block in blocks if isinstance(block, ConnectorBlock))
        if one.sign_in is not None
        and service in ("", one.service)
        and (base := base_url or _base_of(one, hosts, service))
    ]
    if service and found:
        return found[0]
    if connection.check_url:
        return Asked(connection.check_url, SignInCheck(""), typed=True)
    found[:0] = [Asked(one.check_url, SignInCheck("", who=(one.who,))) for one in known_providers() if one.check_url]
    return next((one for one in found if may_go_to(hosts, one.url)), None)


def _base_of(connector: Connector, hosts: Sequence[str], service: str) -> str:
    """Return the address of the service; where an account is a part of its host, with the host of the connection.
    Where that could be any host, only the service of a block is asked."""
    its_host = urlsplit(connector.base_url).netloc
    if "{{" not in connector.base_url or (its_host.endswith("}}") and not service):
        return connector.base_url
    fitting = re.compile(re.sub(r"\\{\\{\w+\\}\\}", "[a-z0-9.-]+", re.escape(its_host)))
    one = next((host for host in hosts if fitting.fullmatch(host)), None)
    base = connector.base_url.replace(its_host, one or its_host)
    return "" if "{{" in base else base


class ConnectionTests:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._room = asyncio.Semaphore(TESTS_MAX)

    async def test(self, asked: Asked, name: str, connections: needs.Connections) -> ConnectionTest:
        began = time.monotonic()
        found = ConnectionTest("timeout", message=f"there was no result within {ALL_S:g} seconds")
        try:
            async with asyncio.timeout(ALL_S), self._room:
                found = await signed_in_with(connections, name, lambda one: self._ask(asked, one))
                if asked.typed and (await self._ask(asked, None)).ok:
                    message = "the address answers without the credential too: this shows only that it can be reached"
                    found = ConnectionTest("failed", message=message, hint="choose one that asks for the credential")
        except TimeoutError:
            pass
        except BlockError as error:
            if not found.ok:  # else it refused the request without the credential, as it should
                found = _failed(error)
        redact, took_ms = self._parts.redactor.redact, round((time.monotonic() - began) * 1000)
        who, message, hint = map(redact, (found.who, found.message, found.hint))
        return replace(found, who=who, message=message, hint=hint, called=asked.line, took_ms=took_ms)

    async def _ask(self, asked: Asked, credential: Credential | None) -> ConnectionTest:
        if asked.ssh:
            assert credential is not None, "only a typed address is asked without one"
            await sftp.check(self._parts.services, asked.url, credential, CHECK_S)
            return ConnectionTest("ok", True, who=credential.username)
        check, service = asked.check, asked.service
        headers = {"Accept": "application/json", **(service.headers if service is not None else {})}
        content = None if check.body is None else orjson.dumps(check.body)
        headers |= {} if content is None else {"Content-Type": "application/json"}
        url = asked.url if credential is None else credential.put(asked.url, headers)
        answer = await self._parts.services.http.request(
            check.method, url, headers=headers, content=content, timeout_s=CHECK_S, max_bytes=ANSWER_BYTES_MAX,
            follow_redirects=False,  # to a page for people who are not signed in
        )  # fmt: skip
        answer = await plain(answer, json=True)
        if answer.status >= 300 and answer.status not in check.accepted:
            raise status_error(check.method, answer, self._parts.clock.now_ms())
        body = decoded(answer)[0]
        if service is not None and (refused := refused_by(service, body)) is not None:
            raise refused
        who = ", ".join(render(part) for part in (at(pointer, body) for pointer in check.who) if part)
        return ConnectionTest("ok", True, answer.status, " ".join(who.split())[:200])


def _failed(error: BlockError) -> ConnectionTest:
    status: int | None = error.extra.get("answer_status")
    outcome = "refused" if status in (401, 403) else _OUTCOMES.get(error.code, "failed")
    if error.code == "service_refused" and error.retryable:
        outcome = "failed"
    return ConnectionTest(outcome, status=status, message=error.message, hint=error.hint)
