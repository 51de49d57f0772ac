"""The HTTP API of a weft server from Python: a method for each call, and event streams that survive lost connections.

    async with WeftClient("http://127.0.0.1:8765") as weft:
        run = await weft.start("expense-approval", input={"amount": 120})
        async for event in weft.follow(run["run"]):
            print(event.seq, event.type, event.key)

Answers are the JSON of docs/reference/http-api.md as plain dicts. A refusal is an ApiError, no answer at all is a
ServerUnreachable; both say what to do next. This file knows HTTP only: nothing here reads a database or a document.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote

import httpx
import orjson
from msgspec import Struct, convert

from executor.store.rows import TERMINAL
from server.client.sse_parser import Frame, SseParser

DEFAULT_URL = "http://127.0.0.1:8765"
RECONNECT_FIRST_S = 0.25
RECONNECT_MAX_S = 5.0
PATIENCE_S = 60.0  # a restart of the server takes a few seconds; a minute without it is worth telling
STREAM_SILENCE_S = 60.0  # the server pings every 15 s: silence of four pings is a dead connection
PASSING = frozenset({429, 502, 503, 504})  # refusals that the same request may not meet a moment later


class Event(Struct, frozen=True):
    """One journal event. `key` is the node with its iteration and branch: `send@review#5/fan[2]`."""

    run: str
    seq: int
    at_ms: int
    type: str
    node: str | None = None
    block: str | None = None
    path: str = ""
    key: str | None = None
    attempt: int = 0
    data: dict[str, Any] = {}


class ClientError(Exception):
    """Something to tell the user. `hint` is the next step, or empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


class ServerUnreachable(ClientError):
    """Nothing answers at the address."""


class ApiError(ClientError):
    """The server refused. `problem` is its application/problem+json body, `{}` when it sent none."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", f"http_{status}"))
        super().__init__(str(problem.get("detail") or f"The server answered {status}."), str(problem.get("hint") or ""))


class WeftClient:
    """`url` is the server's base URL, `token` its WEFT_TOKEN if it asks for one. `patience_s`: how long in all a call
    waits, as the server says, when it refuses a run because too many wait for a worker. `transport` is for tests."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        token: str | None = None,
        *,
        patience_s: float = PATIENCE_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._patience_s = patience_s
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # trust_env off: a proxy for the web must not see local traffic and its token.
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(60.0, connect=5.0),
            transport=transport,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def sign_in_link(self) -> dict[str, Any]:
        """{url, expires_in_s}: signs one browser in, once."""
        return await self._send("POST", "/api/sign-in-links")

    # people
    async def users(self) -> dict[str, Any]:
        """{users}."""
        return await self._send("GET", "/api/users")

    async def invite(self, id: str, role: str, name: str = "") -> dict[str, Any]:
        """{id, url, expires_in_s}: adds a user; the url signs them in, once."""
        return await self._send("POST", "/api/users", {"id": id, "role": role, "name": name})

    async def link_for(self, id: str) -> dict[str, Any]:
        """As `invite`, for a user who exists."""
        return await self._send("POST", f"/api/users/{_part(id)}/link")

    async def set_role(self, id: str, role: str) -> dict[str, Any]:
        """{id, role}."""
        return await self._send("PUT", f"/api/users/{_part(id)}/role", {"role": role})

    async def remove_user(self, id: str) -> dict[str, Any]:
        """{id, role}."""
        return await self._send("DELETE", f"/api/users/{_part(id)}")

    async def tokens(self) -> dict[str, Any]:
        """{tokens}, without their secrets."""
        return await self._send("GET", "/api/tokens")

    async def make_token(self, name: str, role: str, days: int, workflows: list[str] | None) -> dict[str, Any]:
        """{id, token, expires_at_ms}: the token is shown this once."""
        body = {"name": name, "role": role, "days": days, "workflows": workflows}
        return await self._send("POST", "/api/tokens", body)

    async def revoke_token(self, id: str) -> dict[str, Any]:
        """{id, revoked}."""
        return await self._send("DELETE", f"/api/tokens/{_part(id)}")

    async def audit(self, limit: int, actor: str | None = None) -> dict[str, Any]:
        """{rows, next}, newest first."""
        only = {"actor": actor} if actor else {}
        return await self._send("GET", "/api/audit", params={"limit": limit, **only})

    async def verify_audit(self) -> dict[str, Any]:
        """{valid, rows, broken_at, hash}."""
        return await self._send("GET", "/api/audit/verification")

    # workflows
    async def validate(self, document: Any, trigger: str | None = None) -> dict[str, Any]:
        """{valid, diagnostics}."""
        return await self._send("POST", "/api/validate", _present(document=document, trigger=trigger))

    async def deploy(self, document: Any, name: str | None = None) -> dict[str, Any]:
        """{name, version, hash, created, activated, replaced, diagnostics}. The version is active from now on; the same
        document again is the same version."""
        return await self._send("POST", "/api/workflows", _present(document=document, name=name))

    async def workflows(self) -> list[dict[str, Any]]:
        """With the active version and the last run of each."""
        return _items(await self._send("GET", "/api/workflows"), "workflows")

    async def workflow(self, name: str, version: int | None = None) -> dict[str, Any]:
        """{name, version, hash, created_at_ms, active, newest, document}; the active version without a number."""
        return await self._send("GET", f"/api/workflows/{_part(name)}", params=_present(version=version))

    async def versions(self, name: str, before: int | None = None, limit: int = 200) -> dict[str, Any]:
        """{name, active, versions, next}, newest first; `next` is the `before` of the following page."""
        params = _present(before=before, limit=limit)
        return await self._send("GET", f"/api/workflows/{_part(name)}/versions", params=params)

    async def activate(self, name: str, version: int) -> dict[str, Any]:
        """As `deploy`, of a version that is stored."""
        return await self._send("PUT", f"/api/workflows/{_part(name)}/active", {"version": version})

    async def delete_workflow(self, name: str) -> dict[str, Any]:
        """{name, schedules, webhooks}. ApiError 409: a run of it is open."""
        return await self._send("DELETE", f"/api/workflows/{_part(name)}", {})

    async def delete_run(self, run: str) -> int:
        """How many runs went, with those that it had started. ApiError 409: it may not go yet."""
        return int((await self._send("DELETE", f"/api/runs/{_part(run)}", {}))["runs"])

    async def plan(
        self,
        name: str,
        *,
        version: int | None = None,
        trigger: str | None = None,
        form: str = "json",
        expanded: bool = False,
    ) -> str:
        """What a run of a stored workflow would be pinned to, as the server writes it: json, text, dot or mermaid."""
        params = _present(version=version, trigger=trigger, format=form, expanded="1" if expanded else None)
        return (await self._answer("GET", f"/api/workflows/{_part(name)}/plan", params=params)).text

    # runs
    async def start(
        self,
        workflow: str | Mapping[str, Any],
        *,
        input: Any = None,
        trigger: str | None = None,
        version: int | None = None,
        idempotency_key: str | None = None,
        stop_after: str | None = None,
        priority: int | None = None,
    ) -> dict[str, Any]:
        """Run a stored workflow by name (without `version` the active one), or a document: {run, workflow, version,
        status, created, urls, diagnostics}. `priority` from -10 to 10: in place of that of the workflow."""
        body = _present(input=input, trigger=trigger, version=version, stop_after=stop_after, priority=priority)
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        if isinstance(workflow, str):
            return await self._send("POST", f"/api/workflows/{_part(workflow)}/runs", body, headers=headers)
        return await self._send("POST", "/api/runs", {"document": workflow, **body}, headers=headers)

    async def runs(
        self, *, workflow: str | None = None, status: str | None = None, parent: str | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """Newest first; `parent`: those that this run started."""
        params = _present(workflow=workflow, status=status, parent=parent, limit=limit, counts=0)
        return _items(await self._send("GET", "/api/runs", params=params), "runs")

    async def run(self, run: str) -> dict[str, Any]:
        """The run with its nodes, variables and waits."""
        return await self._send("GET", f"/api/runs/{_part(run)}")

    async def why(self, run: str, node: str | None = None, seq: int | None = None) -> list[dict[str, Any]]:
        """[{key, state, reasons}], as it stood after event `seq`."""
        params = _present(node=node, seq=seq)
        return _items(await self._send("GET", f"/api/runs/{_part(run)}/why", params=params), "why")

    async def node(self, run: str, key: str, *, preview: int | None = None) -> dict[str, Any]:
        """The input and output of a node at its last attempt, and its `checkpoint`; values over `preview` bytes are
        cut."""
        params = _present(preview=preview)
        return await self._send("GET", f"/api/runs/{_part(run)}/nodes/{_part(key)}", params=params)

    async def state(self, run: str, seq: int | None = None) -> dict[str, Any]:
        """The run as it stood after event `seq`: nodes, waits, containers, variables."""
        return await self._send("GET", f"/api/runs/{_part(run)}/state", params=_present(seq=seq))

    async def diff(self, run: str, other: str) -> dict[str, Any]:
        """Where two runs went different ways; `same` when nothing differs but times and ids."""
        return await self._send("GET", f"/api/runs/{_part(run)}/diff/{_part(other)}")

    async def gc(self, *, older_than_s: float | None = None, keep: int = 0, dry_run: bool = False) -> dict[str, Any]:
        """Delete old runs; counts of what went, or would go."""
        body = _present(older_than_s=older_than_s, keep=keep, dry_run=dry_run)
        return await self._send("POST", "/api/upkeep/gc", body)

    async def fork(
        self, run: str, seq: int, outputs: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """A new run from event `seq` of this one: as `start`, with {source, seq}."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        body = {"seq": seq, "outputs": dict(outputs or {})}
        return await self._send("POST", f"/api/runs/{_part(run)}/fork", body, headers=headers)

    async def retry(self, run: str, key: str, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """One node again: as `start`, with {source, how, block}."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return await self._send("POST", f"/api/runs/{_part(run)}/nodes/{_part(key)}/retry", {}, headers=headers)

    async def migrate(self, run: str, version: int) -> dict[str, Any]:
        """{run, version, plan_hash, moved}. ApiError 409: it does not fit, `conflicts` says what."""
        return await self._send("POST", f"/api/runs/{_part(run)}/migrate", {"version": version})

    async def cancel(self, run: str, reason: str = "") -> bool:
        """False: it had ended already."""
        try:
            await self._send("POST", f"/api/runs/{_part(run)}/cancel", {"reason": reason})
        except ApiError as error:
            if error.status == 409:
                return False
            raise
        return True

    async def clear_cache(self, workflow: str | None = None) -> int:
        """How many cached results were forgotten: all, or what runs of one workflow left."""
        cleared = await self._send("DELETE", "/api/cache", params=_present(workflow=workflow))
        return int(cleared["cleared"])

    # people
    async def waits(self, status: str = "pending") -> list[dict[str, Any]]:
        """The waits with this status, at most one page of them."""
        return _items(await self._send("GET", "/api/waits", params={"status": status, "counts": 0}), "waits")

    async def waits_page(
        self,
        *,
        status: str = "pending",
        kind: str | None = None,
        workflow: str | None = None,
        run: str | None = None,
        before: str | None = None,
        limit: int = 200,
    ) -> dict[str, Any]:
        """{waits, next, counts, capped}, oldest first; `next` is the `before` of the following page, counts are by
        status, and `capped` are the statuses of which there are more."""
        params = _present(status=status, kind=kind, workflow=workflow, run=run, before=before, limit=limit)
        return await self._send("GET", "/api/waits", params=params)

    async def withdraw(self, run: str, wait: str, *, by: str | None = None, reason: str = "") -> dict[str, Any]:
        """Take a question back; `wait` is its id or the key of the node that waits. ApiError 409: it was over."""
        path = f"/api/runs/{_part(run)}/waits/{_part(wait)}"
        return await self._send("DELETE", path, _present(by=by, reason=reason))

    async def signal(
        self,
        run: str,
        name: str,
        payload: Any = None,
        *,
        correlation: str | None = None,
        dedupe_key: str | None = None,
        by: str | None = None,
    ) -> dict[str, Any]:
        """{run, name, seq, new}; `new` False: the key was used before."""
        body = _present(payload=payload, correlation=correlation, dedupe_key=dedupe_key, by=by)
        return await self._send("POST", f"/api/runs/{_part(run)}/signals/{_part(name)}", body)

    async def signals(
        self, run: str, *, name: str | None = None, correlation: str | None = None
    ) -> list[dict[str, Any]]:
        """In order of arrival, including those that a wait received."""
        params = _present(name=name, correlation=correlation)
        return _items(await self._send("GET", f"/api/runs/{_part(run)}/signals", params=params), "signals")

    async def wait(self, token: str) -> dict[str, Any]:
        """What the token of a resume link asks for. Reading it takes nothing."""
        return await self._send("GET", f"/api/resume/{_part(token)}")

    async def answer(
        self, token: str, fields: Mapping[str, Any], *, action: str | None = None, by: str | None = None
    ) -> dict[str, Any]:
        """Answer a wait, once. ApiError 409: already answered. 422: the fields do not fit, the wait stays open."""
        return await self._send(
            "POST", f"/api/resume/{_part(token)}", _present(fields=dict(fields), action=action, by=by)
        )

    async def memories(self, workflow: str | None = None) -> list[dict[str, Any]]:
        """Conversations that agents remember, the latest first."""
        return _items(await self._send("GET", "/api/memory", params=_present(workflow=workflow)), "conversations")

    async def memory(self, key: str, *, workflow: str = "", scope: str = "") -> list[dict[str, Any]]:
        """The turns of one: of a workflow, or of a scope."""
        where = {"key": key, "workflow": workflow, "scope": scope}
        return _items(await self._send("GET", "/api/memory/turns", params=where), "turns")

    async def delete_memory(self, key: str, *, workflow: str = "", scope: str = "") -> int:
        """Returns how many turns there were."""
        where = {"key": key, "workflow": workflow, "scope": scope}
        return int((await self._send("DELETE", "/api/memory", params=where))["deleted"])

    async def usage(
        self, *, by: str = "day", first: str | None = None, to: str | None = None, workflow: str | None = None
    ) -> dict[str, Any]:
        """Tokens and costs by day, workflow or model, of the days from `first` to `to`."""
        asked = {**_present(to=to, workflow=workflow), **({} if first is None else {"from": first}), "by": by}
        return await self._send("GET", "/api/usage", params=asked)

    # connectors and secrets
    async def connectors(self) -> list[dict[str, Any]]:
        """Those that were added to the installation, by service."""
        return _items(await self._send("GET", "/api/connectors"), "connectors")

    async def put_connector(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """A new one, or another document of its service."""
        service = str(document.get("service", ""))
        return await self._send("PUT", f"/api/connectors/{_part(service)}", {"document": dict(document)})

    async def delete_connector(self, service: str) -> None:
        await self._send("DELETE", f"/api/connectors/{_part(service)}")

    async def secrets(self) -> list[dict[str, Any]]:
        """By name, without their values."""
        return _items(await self._send("GET", "/api/secrets"), "secrets")

    async def put_secret(self, name: str, value: str, hosts: Sequence[str] = ()) -> dict[str, Any]:
        """A first or a new value. `hosts`: where it may be sent to."""
        return await self._send("PUT", f"/api/secrets/{_part(name)}", {"value": value, "hosts": list(hosts)})

    async def delete_secret(self, name: str) -> None:
        await self._send("DELETE", f"/api/secrets/{_part(name)}")

    async def connections(self) -> dict[str, Any]:
        """{connections, redirect_uri}, without their credentials."""
        return await self._send("GET", "/api/connections")

    async def put_connection(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Add or replace one: {kind, hosts, secret?, ...}."""
        return await self._send("PUT", f"/api/connections/{_part(name)}", dict(spec))

    async def delete_connection(self, name: str) -> None:
        await self._send("DELETE", f"/api/connections/{_part(name)}")

    async def connect(self, name: str) -> dict[str, Any]:
        """{url, redirect_uri, until_ms}: where a person signs in."""
        return await self._send("POST", f"/api/connections/{_part(name)}/connect")

    async def connected(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """End a sign-in with {state, code, error, iss} of the address to which the provider sent the browser."""
        return await self._send("POST", "/api/oauth/code", dict(said))

    async def rekey_secrets(self) -> dict[str, Any]:
        """Encrypt with the present key what an older one was used for."""
        return await self._send("POST", "/api/secrets/rekey")

    # what starts runs without a person
    async def schedules(self, workflow: str | None = None) -> list[dict[str, Any]]:
        """By id, each with its next five times."""
        return _items(await self._send("GET", "/api/schedules", params=_present(workflow=workflow)), "schedules")

    async def schedule(self, schedule: str) -> dict[str, Any]:
        """With what became of its last times."""
        return await self._send("GET", f"/api/schedules/{_part(schedule)}")

    async def put_schedule(self, schedule: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Make or change one: {workflow, cron, tz?, input?, trigger?, version?, overlap?, catch_up?, enabled?}."""
        return await self._send("PUT", f"/api/schedules/{_part(schedule)}", dict(spec))

    async def delete_schedule(self, schedule: str) -> None:
        await self._send("DELETE", f"/api/schedules/{_part(schedule)}")

    async def switch_schedule(self, schedule: str, how: str) -> dict[str, Any]:
        """`how`: enable or disable."""
        return await self._send("POST", f"/api/schedules/{_part(schedule)}/{how}")

    async def run_schedule(self, schedule: str) -> dict[str, Any]:
        """A run now; as `start`."""
        return await self._send("POST", f"/api/schedules/{_part(schedule)}/run")

    async def webhooks(self, workflow: str | None = None) -> list[dict[str, Any]]:
        """By id, without their secrets."""
        return _items(await self._send("GET", "/api/webhooks", params=_present(workflow=workflow)), "webhooks")

    async def webhook(self, webhook: str) -> dict[str, Any]:
        """With its secret and its last deliveries."""
        return await self._send("GET", f"/api/webhooks/{_part(webhook)}")

    async def rotate_webhook(self, webhook: str) -> dict[str, Any]:
        """{id, secret}: a new secret; the old one counts no more."""
        return await self._send("POST", f"/api/webhooks/{_part(webhook)}/rotate")

    # files
    async def upload(
        self, path: str | Path, *, name: str | None = None, media_type: str | None = None
    ) -> dict[str, Any]:
        """Store a file, {type, id, name, media_type, size}: the value that an input, an answer or a signal names it by.
        Without a name it has that of the file on this machine. Raises OSError, and as other calls do."""
        path = Path(path)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(path.stat().st_size)}
        params = _present(name=name or path.name, media_type=media_type)
        try:
            response = await self._http.post("/api/files", content=_pieces(path), params=params, headers=headers)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        if response.status_code >= 400:
            raise ApiError(response.status_code, _problem(response.content))
        stored: dict[str, Any] = orjson.loads(response.content)
        return stored

    async def download(self, file: str, path: str | Path) -> int:
        """Write the file with this id to `path`; how many bytes it has."""
        size = 0
        try:
            async with self._http.stream("GET", f"/api/files/{_part(file)}") as response:
                if response.status_code >= 400:
                    raise ApiError(response.status_code, _problem(await response.aread()))
                with _opened(Path(path), "wb") as target:
                    async for piece in response.aiter_bytes():
                        size += target.write(piece)
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        return size

    # events
    async def events(self, run: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """One page of the journal behind seq `after`."""
        page = await self._send("GET", f"/api/runs/{_part(run)}/events", params={"after": after, "limit": limit})
        return [convert(event, Event) for event in page["events"]]

    async def follow(self, run: str, after: int = 0, *, patience_s: float = PATIENCE_S) -> AsyncGenerator[Event, None]:
        """The journal behind seq `after`, then live, each event once and in order, until the run has ended.

        A lost connection is taken up again at the last seq seen (Last-Event-ID). Raises ServerUnreachable after
        `patience_s` seconds without a connection, ApiError when the server refuses.
        """
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        pause_s = RECONNECT_FIRST_S
        while True:
            try:
                async with aclosing(self._stream(run, after)) as events:
                    async for event in events:
                        lost_at, pause_s = None, RECONNECT_FIRST_S
                        if event.seq > after:
                            after = event.seq
                            yield event
                        if event.type == "run.finished":
                            return
                # A stream that ends by itself: the server stops, or there was nothing left to send.
                if (await self.run(run))["status"] in TERMINAL and not await self.events(run, after, limit=1):
                    return
                lost_at = None
            except (ServerUnreachable, ApiError) as error:
                if isinstance(error, ApiError) and error.status not in PASSING:
                    raise
                lost_at = loop.time() if lost_at is None else lost_at
                if loop.time() - lost_at + pause_s > patience_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RECONNECT_MAX_S)

    async def _stream(self, run: str, after: int) -> AsyncGenerator[Event, None]:
        """One connection's worth of journal events. Live-only frames (token deltas) have no id and are left out."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        parser = SseParser()
        try:
            async with self._http.stream(
                "GET",
                f"/api/runs/{_part(run)}/events",
                headers=headers,
                timeout=httpx.Timeout(STREAM_SILENCE_S, connect=5.0),
            ) as response:
                if response.status_code >= 400:
                    raise ApiError(response.status_code, _problem(await response.aread()))
                async for chunk in response.aiter_bytes():
                    for frame in parser.feed(chunk):
                        if event := _event(frame):
                            yield event
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    async def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """One call. Raises ApiError on 4xx and 5xx, ServerUnreachable when nothing answers that speaks JSON."""
        response = await self._answer(method, path, body, params=params, headers=headers)
        try:
            answer = orjson.loads(response.content)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerUnreachable(
                f"The server at {self.url} is not a weft server.",
                "Set WEFT_URL to the address that `weft serve` prints.",
            )
        return answer

    async def _answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """A 2xx or 3xx answer, whatever is in it. Raises as `_send` does."""
        content = None if body is None else orjson.dumps(body)
        sent = {"Accept": "application/json", **(headers or {})}
        if content is not None:
            sent["Content-Type"] = "application/json"
        left_s = self._patience_s
        while True:
            try:
                response = await self._http.request(method, path, content=content, params=params, headers=sent)
            except httpx.TransportError as error:
                raise self._unreachable(error) from None
            if response.status_code < 400:
                return response
            refused = ApiError(response.status_code, _problem(response.content))
            # Nothing was stored then.
            wait_s = _seconds(response.headers.get("Retry-After")) if refused.code == "queue_full" else None
            if wait_s is None or wait_s > left_s:
                raise refused
            left_s -= wait_s
            await asyncio.sleep(wait_s)

    def _unreachable(self, error: httpx.TransportError) -> ServerUnreachable:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServerUnreachable(
                f"No weft server answers at {self.url}.",
                "Start one with `weft serve`, or set WEFT_URL to where it runs.",
            )
        if isinstance(error, httpx.TimeoutException):
            return ServerUnreachable(
                f"The server at {self.url} takes too long to answer.",
                "Try again. /healthz shows the state of the server.",
            )
        return ServerUnreachable(
            f"The connection to {self.url} was lost ({type(error).__name__}).",
            "Check that the server is running and that the address is that of a weft server.",
        )


def _seconds(text: str | None) -> float | None:
    """What a Retry-After of this server says."""
    return max(0.1, float(text)) if text is not None and text.isdecimal() else None


def _event(frame: Frame) -> Event | None:
    if frame.id is None:
        return None
    return convert(orjson.loads(frame.data), Event)


def _part(text: str) -> str:
    """One segment of a path: ids and names may hold anything."""
    return quote(text, safe="")


def _present(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _items(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = answer[name]
    return items


def _problem(content: bytes) -> Mapping[str, Any]:
    try:
        problem = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return problem if isinstance(problem, dict) else {}


async def _pieces(path: Path) -> AsyncGenerator[bytes, None]:
    with _opened(path, "rb") as file:
        while piece := file.read(256 * 1024):
            yield piece


def _opened(path: Path, mode: Literal["rb", "wb"]) -> BinaryIO:
    """A local file: reading and writing it delays this program alone."""
    return path.open(mode)
