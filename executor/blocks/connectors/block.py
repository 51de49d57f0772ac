"""The block type that a connector document makes: `connector.<service>`, with its operations as one param.

Its requests go through the `http` block, so the guard on addresses, retries, the Idempotency-Key and all bounds are
those of that block.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from compiler.catalog import CONNECTOR, BlockSpec, Finding, Params
from executor.blocks.connectors.document import Auth, Check, Connector, Operation, Refusal, choices_of, type_of
from executor.blocks.connectors.pages import ITEMS_MAX, PAGES_MAX, after, at, items_of
from executor.blocks.connectors.signature import query_text, signed
from executor.blocks.connectors.template import filled, filled_base, filled_path, form_of_body, in_headers
from executor.blocks.http.binding import basic, derived, opened, shown_place
from executor.blocks.types import http
from executor.blocks.types.connected import CONNECTION
from executor.blocks.types.params import invalid, text
from executor.errors import BlockError, Lost
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.coerce import coerce
from executor.kernel.values.payload import render

REGION: Final = "us-east-1"
FORM: Final = "application/x-www-form-urlencoded"
# A stored connection can replace these; the others put the credential into the address, or sign with it.
_CONNECTED: Final = frozenset({"bearer", "basic", "header", "query"})
_AFTER_FIELDS: Final = 1000  # position in the form
# The clock of the service may be this late.
_SINCE_MS: Final = 300_000
_WIDGETS: Final = {"string": "text", "integer": "number", "number": "number", "boolean": "boolean"}
_REGION: Final = re.compile(r"[a-z0-9-]{1,40}")


class Unread(msgspec.Struct, frozen=True):
    """A document that is read when it is first needed: a server has many of them, and workflows use few."""

    service: str
    has_events: bool
    read: Callable[[], Connector]


class ConnectorBlock:
    def __init__(self, connector: Connector | Unread) -> None:
        self.type = CONNECTOR + connector.service
        self._given = connector
        self._spec: BlockSpec | None = None

    @property
    def has_events(self) -> bool:
        return self._given.has_events if isinstance(self._given, Unread) else bool(self._given.events)

    @property
    def connector(self) -> Connector:
        if isinstance(self._given, Unread):
            self._given = self._given.read()
        return self._given

    @property
    def spec(self) -> BlockSpec:
        if self._spec is None:
            self._spec = _spec(self.connector)
        return self._spec

    async def run(self, ctx: StepContext) -> Done:
        """Output {"status", "result"}, and for an operation that reads pages {"more"}: `result` is then the list of all
        items. Raises BlockError: params_invalid; service_refused for an answer that reports failure; page_invalid; and
        those of the http block."""
        operation = _operation(self.connector, ctx.params)
        if operation is None:
            raise invalid(
                f"there is no operation {str(ctx.params['operation'])[:80]!r}",
                hint=f"use one of {', '.join(self.connector.operations)}",
            )
        sent = _sent(ctx.idempotency_key)
        request = request_of(self.connector, operation, ctx.params, ctx.now_ms, sent)
        if (found := await self._done_before(ctx, operation, sent)) is not None:
            return found
        if operation.pages is None:
            answer = await self._ask(ctx, request, 1)
            return Done({"status": answer["status"], "result": answer["body"]})
        items: list[Any] = []
        most = int(coerce("integer", ctx.params.get("pages_max")) or 1)
        if not 1 <= most <= PAGES_MAX:
            raise invalid(f"pages_max must be between 1 and {PAGES_MAX}, it is {most}")
        number = 0
        following: dict[str, Any] | None = request
        while following is not None and number < most and len(items) < ITEMS_MAX:
            number += 1
            answer = await self._ask(ctx, following, number)
            items += items_of(operation.pages, answer["body"])
            following = after(operation.pages, following, answer, number)
        return Done({"status": answer["status"], "result": items[:ITEMS_MAX], "more": following is not None})

    async def _done_before(self, ctx: StepContext, operation: Operation, sent: Mapping[str, str]) -> Done | None:
        """Return the result of an earlier attempt whose request was sent, which a checkpoint records. Raises Lost if
        its effect is not known."""
        if not operation.check and not operation.idempotent_s:
            return None
        last = ctx.last_checkpoint if isinstance(ctx.last_checkpoint, dict) else {}
        if last and not await ctx.repeat_wanted():
            found = await self._find_effect(ctx, operation, sent, last)
            if found is not None:
                return Done({"status": 200, "result": found})
        await ctx.checkpoint({"since_ms": ctx.now_ms, **last, "sent_ms": ctx.clock() or ctx.now_ms})
        return None

    async def _find_effect(
        self, ctx: StepContext, operation: Operation, sent: Mapping[str, str], last: Mapping[str, Any]
    ) -> Any | None:
        if operation.idempotent_s > ((ctx.clock() or ctx.now_ms) - int(last["since_ms"])) / 1000:
            return None  # it is recognized
        check = next((one for one in operation.check if all(ctx.params.get(name) for name in one.needs)), None)
        if check is None and operation.idempotent_s:
            raise _in_doubt(ctx, self.connector, "too much time has passed to repeat the request")
        if check is None:
            raise _in_doubt(ctx, self.connector, "the service cannot be asked for this one")
        since_ms = int(last["since_ms"]) - _SINCE_MS
        since = datetime.fromtimestamp(since_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        request = request_of(
            self.connector,
            msgspec.structs.replace(
                operation, method=check.method, path=check.path, query=check.query, headers={}, body=check.body,
                pages=None,
            ),
            ctx.params,
            ctx.now_ms,
            {**sent, "since": since, "since_s": str(since_ms // 1000)},
        )  # fmt: skip
        while True:
            asked_ms = ctx.clock() or ctx.now_ms
            try:
                answer = (await self._ask(ctx, request, 1))["body"]
            except BlockError as error:
                if error.deferred is not None:
                    raise
                raise _in_doubt(ctx, self.connector, error.message) from error
            found = _found_in(check, answer, sent)
            if isinstance(found, str):
                raise _in_doubt(ctx, self.connector, found)
            if found is not None:
                ctx.log(f"({self.connector.title} has it: an earlier attempt did it)")
                values = {**_values(operation, ctx.params), **sent, **found}
                return filled(check.output, values)
            left_s = check.settle_s - (asked_ms - int(last["sent_ms"])) / 1000
            if left_s <= 0:
                ctx.log(f"({self.connector.title} does not have it: it is sent again)")
                return None
            await asyncio.sleep(left_s)

    async def _ask(self, ctx: StepContext, request: dict[str, Any], number: int) -> dict[str, Any]:
        """Return the answer of the http block. Each page has a key of its own: it is another request."""
        if number > 1 and request["method"] not in ("GET", "HEAD"):
            key = {"Idempotency-Key": f"{ctx.idempotency_key}-{number}"}
            request = {**request, "headers": {**request["headers"], **key}}
        done = await http.block.run(msgspec.structs.replace(ctx, params=request))
        answer: dict[str, Any] = done.output
        if (refused := refused_by(self.connector, answer["body"])) is not None:
            raise refused
        return answer


def _sent(idempotency_key: str) -> dict[str, str]:
    """Return the keys that an operation may send to be found by: the same in all attempts of an execution."""
    digest = hashlib.sha256(idempotency_key.encode()).digest()
    its_uuid = uuid.UUID(bytes=digest[:16], version=4)
    return {
        "idempotency_key": f"weft-{digest.hex()[:32]}",
        "idempotency_uuid": str(its_uuid),
        "idempotency_hex": digest.hex()[:32],
    }


def _found_in(check: Check, answer: Any, sent: Mapping[str, str]) -> dict[str, Any] | str | None:
    """Return the parts of the item that has the key; or why it is not clear if there is one; or None."""
    items = at(check.items, answer)
    if not isinstance(items, list):
        return "the answer is no list"
    for item in items:
        mark = at(check.mark, item)
        if isinstance(mark, str) and any(key in mark for key in sent.values()):
            return {"found": item, **{name: at(pointer, item) for name, pointer in check.take.items()}}
    if len(items) >= check.size or (check.more is not None and at(check.more, answer)):
        return "too much was done there since"
    if check.doubt is not None and any(at(check.doubt, item) and at(check.mark, item) is None for item in items):
        return "what is there does not show who did it"
    return None


def _in_doubt(ctx: StepContext, connector: Connector, reason: str) -> Lost:
    message = f"it is not clear whether {connector.title} has done it: {reason}"
    ctx.log(f"({message})")
    return Lost(message, ask=True)


def request_of(
    connector: Connector, operation: Operation, params: Params, now_ms: int = 0, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the params of the http block. `more`: values beside the fields. Raises BlockError(params_invalid)."""
    values = {**_values(operation, params), **(more if more is not None else _sent(""))}
    credential, connection = text(params, "credential"), text(params, "connection")
    if credential is None and connection is None and connector.auth.kind != "none":
        raise invalid(f"{connector.auth.title} is required", hint="such as ${NAME}, a secret, or a connection")
    if credential is not None and connection is not None:
        raise invalid(f"{connector.auth.title} and a connection cannot be used together")
    region = text(params, "region") or REGION
    if not _REGION.fullmatch(region):
        raise invalid(f"region must be a name such as {REGION}, not {region[:80]!r}")
    base = text(params, "base_url") or filled_base(operation.base_url or connector.base_url, values)
    base = base.rstrip("/").replace("{{region}}", region)
    if connector.auth.kind == "path":
        base = base.replace("{{credential}}", _in_path(credential or ""))
    query = {**(filled(operation.query, values) or {}), **_page_of(operation)}
    headers = {**connector.headers, **in_headers(filled(operation.headers, values) or {})}
    if connection is None:
        _sign(connector.auth, credential or "", headers, query)
    body = filled(operation.body, values)
    if isinstance(body, dict) and headers.get("Content-Type") == FORM:
        body = dict(form_of_body(body))
    url = base + filled_path(operation.path, values)
    if connector.auth.kind == "aws":
        asked = query_text({name: render(value) for name, value in query.items()})
        url, query, body = f"{url}?{asked}" if asked else url, {}, None if body is None else render(body)
        headers = signed(
            operation.method,
            url,
            {name: render(value) for name, value in headers.items()},
            (body or "").encode(),
            credential=credential or "",
            region=region,
            service=connector.auth.name,
            now_ms=now_ms,
        )
    return {
        "method": operation.method,
        "url": url,
        "headers": headers,
        "query": query,
        **({"body": body} if body is not None else {}),
        **({"connection": connection} if connection is not None else {}),
        "timeout_s": params.get("timeout_s") or 30,
    }


def _page_of(operation: Operation) -> dict[str, Any]:
    """Return the field for the page. The first page is requested only where the service counts them from 0."""
    pages = operation.pages
    return {pages.name: pages.first} if pages is not None and pages.kind == "page" and pages.first == 0 else {}


def _values(operation: Operation, params: Params) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, schema in operation.fields.items():
        value = params.get(name)
        if value is None or value == "":
            value = schema.get("default")
        if value is None:
            if name in operation.required:
                raise invalid(f"{_title(name, schema)} is required")
            continue
        kinds = type_of(schema)
        values[name] = coerce(kinds[0], value) if len(kinds) == 1 else value
    return values


def _sign(auth: Auth, credential: str, headers: dict[str, Any], query: dict[str, Any]) -> None:
    match auth.kind:
        case "bearer":
            headers["Authorization"] = f"Bearer {credential}"
        case "basic":
            headers["Authorization"] = derived(credential, basic)
        case "header":
            headers[auth.name] = auth.prefix + credential
        case "query":
            query[auth.name] = credential
        case "path" | "aws" | "none":
            pass


def _in_path(credential: str) -> str:
    """Check the credential and return it unencoded, so that it can be found and removed again."""
    value = opened(credential)
    if not value.isascii() or any(not (each.isalnum() or each in "-._~:") for each in value):
        raise invalid("the credential has characters that cannot be in an address")
    return credential


def _says_so(refusal: Refusal, body: Any) -> bool:
    found = at(refusal.at, body)
    return bool(found) if refusal.equals is None else found == refusal.equals and found is not None


def refused_by(connector: Connector, body: Any) -> BlockError | None:
    """Return the error of an answer that has a good status and reports failure."""
    refusal = next((each for each in connector.refused if _says_so(each, body)), None)
    if refusal is None:
        return None
    reason = at(refusal.message, body) if refusal.message else None
    said = render(reason)[:300] if reason is not None else "no reason given"
    return BlockError(
        f"{connector.title} refused the request: {said}", code="service_refused", retryable=said in refusal.retry
    )


def _operation(connector: Connector, params: Params) -> Operation | None:
    name = params.get("operation") or next(iter(connector.operations))
    return connector.operations.get(name) if isinstance(name, str) else None


def _spec(connector: Connector) -> BlockSpec:
    names = list(connector.operations)

    def check(params: Params) -> tuple[Finding, ...]:
        operation = _operation(connector, params)
        if operation is None:
            return ()  # the schema checks it
        findings: list[Finding] = []
        signed = [name for name in ("credential", "connection") if params.get(name) not in (None, "")]
        if not signed and connector.auth.kind in _CONNECTED:
            message = f'"{connector.auth.title}" or a connection is required.'
            findings.append(Finding("required", "/credential", message))
        missing = [name for name in operation.required if params.get(name) in (None, "")]
        found = [(name, operation.fields[name]) for name in missing if "default" not in operation.fields[name]]
        after = f'is required for "{operation.title}".'
        findings += (Finding("required", f"/{name}", f'"{_title(name, schema)}" {after}') for name, schema in found)
        return tuple(findings)

    def output_of(params: Params) -> dict[str, Any] | None:
        operation = _operation(connector, params)
        result = (operation.output if operation is not None else None) or {}
        properties: dict[str, Any] = {"status": {"type": "integer"}, "result": result}
        if operation is not None and operation.pages is not None:
            properties |= {"result": {"type": "array", "items": result}, "more": {"type": "boolean"}}
        return {"type": "object", "properties": properties}

    def only_reads(params: Params) -> bool:
        operation = _operation(connector, params)
        return operation is not None and operation.only_reads

    def repeatable(params: Params) -> bool:
        operation = _operation(connector, params)
        return operation is not None and (operation.idempotent or bool(operation.check))

    listed = ", ".join(operation.title.lower() for operation in list(connector.operations.values())[:8])
    return BlockSpec(
        type=CONNECTOR + connector.service,
        title=connector.title,
        description=connector.description or f"{connector.title}: {listed}.",
        category="connector",
        params=_params(connector, names),
        effect="write",
        idempotent=False,
        only_reads=only_reads,
        repeatable=repeatable,
        output_from=output_of,
        check=check,
        attempts=3,
        sentence="{operation}",
        icon=connector.icon,
    )


def _params(connector: Connector, names: list[str]) -> dict[str, Any]:
    operations = connector.operations
    paged = [name for name in names if operations[name].pages is not None]
    properties: dict[str, Any] = {
        "operation": {
            "enum": names,
            "title": "Operation",
            "default": names[0],
            "description": f"What to do in {connector.title}.",
            "x-titles": {name: operations[name].title for name in names},
            "x-weft": "literal",
            "x-ui": {"order": 1, "widget": "select"},
        }
    }
    offered = choices_of(connector)
    for n, (name, schema) in enumerate(_fields(connector).items()):
        ui = {"order": n + 2, **_widget(schema), **schema.get("x-ui", {})}
        if (its := offered.get(name)) is not None:
            account = ["connection"] if connector.auth.kind != "none" else []
            ui["choices"] = [*account, *its.needs(operations[its.operation])]  # the fields that they depend on
        properties[name] = {**schema, "x-ui": ui}
    auth, ui = connector.auth, {"order": _AFTER_FIELDS, "widget": "text"}
    if auth.kind != "none":
        about = f"{auth.description} Use ${{NAME}}, a secret.".strip()
        properties["credential"] = {
            "type": "string", "x-weft": "secret", "title": auth.title, "description": about, "x-ui": ui
        }  # fmt: skip
    if auth.kind in _CONNECTED:
        needed = {"kind": auth.kind, "title": auth.title, "name": auth.name, "prefix": auth.prefix}
        needed["host"] = _host(connector.base_url)
        needed |= {"provider": auth.provider, "scopes": auth.scopes} if auth.provider else {}
        needed |= {"service": connector.service} if connector.sign_in is not None else {}
        ui_of = {**ui, "widget": "connection", "auth": needed}  # what a connection made beside it consists of
        properties["connection"] = {"type": "string", **CONNECTION.keywords, "x-ui": ui_of}
    if auth.kind == "aws":
        properties["region"] = {"type": "string", "title": "Region", "default": REGION, "x-ui": ui}
    if paged:
        properties["pages_max"] = {
            "type": "integer",
            "title": "Pages to read",
            "description": "Further pages are read until this number.",
            "minimum": 1,
            "maximum": PAGES_MAX,
            "default": 1,
            "x-when": {"operation": paged},
            "x-ui": {"order": _AFTER_FIELDS + 1, "widget": "number"},
        }
    properties["base_url"] = {
        "type": "string",
        "title": "Address of the service",
        "description": f"Instead of {connector.base_url}",
        "x-ui": {**ui, "order": _AFTER_FIELDS + 2, "advanced": True},
    }
    timeout = http.block.spec.params["properties"]["timeout_s"]
    properties["timeout_s"] = {**timeout, "x-ui": {**timeout["x-ui"], "order": _AFTER_FIELDS + 3}}
    required = ["credential"] if auth.kind in ("path", "aws") else []
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _host(base_url: str) -> str:
    """Return where a connection for the service may be sent, in the way that its hosts are written."""
    parts = urlsplit(base_url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # a placeholder
        return parts.hostname or ""
    return shown_place(parts.scheme, parts.hostname or "", port)


def _fields(connector: Connector) -> dict[str, dict[str, Any]]:
    """Return the fields of all operations, each with the operations that have it, and that need it (`x-required`)."""
    found: dict[str, dict[str, Any]] = {}
    for id, operation in connector.operations.items():
        for name, schema in operation.fields.items():
            own = {key: value for key, value in schema.items() if key != "choices"}
            its = found.setdefault(name, {**own, "title": _title(name, schema), "x-when": {}})
            its["x-when"] = {"operation": [*its["x-when"].get("operation", ()), id]}
            if name in operation.required and "default" not in schema:
                needed = its.get("x-required", {}).get("operation", ())
                its["x-required"] = {"operation": [*needed, id]}
    return found


def _title(name: str, schema: Mapping[str, Any]) -> str:
    return str(schema.get("title") or name.replace("_", " ").capitalize())


def _widget(schema: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        return {"widget": "select"}
    kinds = type_of(schema)
    if kinds == ("string",) and schema.get("format") in ("multiline", "textarea"):
        return {"widget": "longtext", "rows": 4}
    return {"widget": _WIDGETS.get(kinds[0], "json") if len(kinds) == 1 else "json"}
