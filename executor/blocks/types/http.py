"""`http`: one HTTP request. Its repeats have the same Idempotency-Key. Many services ignore that header, so a POST is
repeated only where the author names the header by which the service recognizes it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlencode, urlsplit

import orjson

from compiler.catalog import Params
from executor.blocks.http.client import MIB
from executor.blocks.http.handles import written_as
from executor.blocks.http.parts import header_of
from executor.blocks.services import services_of
from executor.blocks.types.client import decoded, plain, status_error
from executor.blocks.types.connected import CONNECTION, credential_of
from executor.blocks.types.declared import block_type
from executor.blocks.types.file_contents import SENT_BYTES_MAX, multipart
from executor.blocks.types.params import FILLED, SENT_HEADERS, TypedParams, changed, param, shape
from executor.blocks.types.response import header_texts
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.files import READ_BYTES_MAX, is_file
from executor.kernel.values.payload import render

if TYPE_CHECKING:
    from executor.blocks.http.exchanges import Answer
    from executor.blocks.vault.connection import Credential

_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
KEY_HEADER = "Idempotency-Key"
BODY_BYTES_MAX = 5 * MIB  # for a response that becomes a value
# The client writes these itself; set by hand they would let one request look like two.
_CLIENT_OWN = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


class _Params(TypedParams):
    url: str = param(
        "URL", "Starts with http:// or https://", required=True, order=2, weft="secret", url=True, pattern=FILLED
    )
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] = param(
        "Method",
        "A POST or PATCH whose outcome is not known is not sent again by itself.",
        default="GET",
        order=1,
        type="string",
    )
    headers: Any = changed(SENT_HEADERS, description="Use ${NAME} for secrets. Headers that are null are not sent.")
    query: dict[str, Any] | None = param(
        "Query parameters", "Added to the URL. A list repeats the parameter.", weft="secret"
    )
    body: Any = param(
        "Body",
        "Text and files are sent unchanged, other values as JSON.",
        rows=6,
        weft="secret",
        when={"method": ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]},
    )
    connection: str | None = changed(CONNECTION, order=2.5)
    idempotency_header: str | None = param(
        "Idempotency header",
        "The header by which the service recognizes a repeated request, such as Idempotency-Key. "
        "With it, a POST or PATCH whose outcome is not known is sent again; without it, a person is asked.",
        order=5.5,
        advanced=True,
        weft="literal",
        when={"method": ["POST", "PATCH"]},
        pattern="^[A-Za-z0-9-]+$",
        maxLength=64,
    )
    timeout_s: float = param(
        "Timeout (seconds)",
        "For the whole response, including redirects.",
        default=30,
        order=6,
        advanced=True,
        exclusiveMinimum=0,
        maximum=300,
    )
    fail_on_status: bool = param(
        "Fail on status 400 and above",
        "Turn off to return such a response as the output, without a retry.",
        default=True,
        order=7,
        advanced=True,
    )
    save_file: bool = param(
        "Save the response as a file",
        "The body of the output is then a file, up to 16 MiB.",
        default=False,
        order=8,
        advanced=True,
    )


def _is_recognized(params: Params) -> bool:
    """Return True if a repeated request does no harm: by its method (RFC 9110, 9.2.2), or by a header that the service
    honours according to the author."""
    return str(params.get("method") or "GET").upper() in _IDEMPOTENT or bool(params.get("idempotency_header"))


@block_type(
    type="http",
    title="HTTP request",
    description="Sends an HTTP request and returns the response.",
    category="action",
    params=_Params.json_schema,
    effect="write",
    idempotent=False,
    only_reads=lambda params: str(params.get("method") or "GET").upper() in ("GET", "HEAD"),
    repeatable=_is_recognized,
    output=shape(
        status="integer",
        headers={"type": "object", "additionalProperties": True},
        body={},
        encoding={"enum": ["json", "text", "base64", "file", "none"]},
        url="string",
        ms="integer",
    ),
    attempts=3,
    sentence="{method} {url}",
    icon="globe",
)
async def block(ctx: StepContext) -> Done:
    """Output {"status", "headers", "body", "encoding", "url", "ms"}: body is parsed if it is JSON, base64 if it is
    not text, and a file with `save_file`. Raises BlockError: params_invalid; http_status for 400 and above; those
    of GuardedClient and of files."""
    params = _Params(ctx.params)
    method = params.method
    headers = header_texts(params.headers, _CLIENT_OWN)
    content = await _content_with_files(ctx, params.body, headers)
    key_header = params.idempotency_header or KEY_HEADER
    if method not in ("GET", "HEAD") and not any(name.lower() == key_header.lower() for name in headers):
        headers[key_header] = ctx.idempotency_key
    tracing = ctx.services.tracing
    if tracing is not None and not any(name.lower() == "traceparent" for name in headers):
        above = await tracing.traceparent(ctx.run_id, ctx.key, ctx.attempt)
        headers |= {} if above is None else {"traceparent": above}
    url = with_query(params.url, params.query)

    async def ask(credential: Credential | None) -> Answer:
        signed = dict(headers)
        with nullcontext() if credential is None else credential.bound():
            answer = await services_of(ctx).http.request(
                method,
                url if credential is None else credential.put(url, signed),
                headers=signed,
                content=content,
                timeout_s=params.timeout_s,
                max_bytes=min(READ_BYTES_MAX, ctx.files.bytes_max) if params.save_file else BODY_BYTES_MAX,
                waiting=ctx.waiting,
            )
            return await plain(answer, json=not params.save_file)

    credential = await credential_of(ctx, params.connection)
    answer = await ask(credential)
    if answer.status == 401 and credential is not None and credential.renews:
        answer = await ask(await credential_of(ctx, params.connection, credential))
    if answer.status >= 400 and params.fail_on_status:
        raise status_error(method, answer, ctx.now_ms + answer.ms)
    body, encoding = await _saved(ctx, answer) if params.save_file else decoded(answer)
    return Done(
        {
            "status": answer.status,
            "headers": answer.headers,
            "body": body,
            "encoding": encoding,
            "url": answer.url,
            "ms": answer.ms,
        }
    )


def with_query(url: str, query: dict[str, Any] | None) -> str:
    if not query:
        return url
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        pairs += [(name, render(item)) for item in (value if isinstance(value, list) else [value]) if item is not None]
    base, mark, fragment = url.partition("#")
    joint = "" if not pairs else "&" if "?" in base else "?"
    return f"{base}{joint}{written_as(urlencode(pairs), 'f')}{mark}{fragment}"


async def _content_with_files(ctx: StepContext, body: Any, headers: dict[str, str]) -> bytes | None:
    """Like `content_of`; a file is sent as it is, and the files of a form (`multipart/form-data`) as parts of it."""
    name = next((each for each in headers if each.lower() == "content-type"), "Content-Type")
    if is_file(body):
        headers.setdefault(name, (await ctx.files.find(body)).media_type)
        return await ctx.files.read(body, SENT_BYTES_MAX)
    if isinstance(body, dict) and headers.get(name, "").partition(";")[0].strip().lower() == "multipart/form-data":
        content, headers[name] = await multipart(ctx, body)
        return content
    return content_of(body, headers)


async def _saved(ctx: StepContext, answer: Answer) -> tuple[Any, str]:
    """Return the body as a file, named by the response or by its address."""
    if not answer.body:
        return None, "none"
    head = header_of("Content-Disposition", answer.headers.get("content-disposition", ""))
    name = head.get_filename() or unquote(urlsplit(answer.url).path.rpartition("/")[2]) or "response"
    saved = await ctx.files.save(answer.body, name, answer.headers.get("content-type"))
    return saved.value, "file"


def content_of(body: Any, headers: dict[str, str]) -> bytes | None:
    """Return the bytes of the body; adds a Content-Type to `headers` if there is none."""
    if body is None:
        return None
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), None)
    if isinstance(body, str):
        content = body.encode("utf-8", "replace")
        kind = kind or headers.setdefault("Content-Type", "text/plain; charset=utf-8")
    elif isinstance(body, dict) and kind is not None and kind.startswith("application/x-www-form-urlencoded"):
        pairs = [(name, render(value)) for name, value in body.items() if value is not None]
        content = written_as(urlencode(pairs), "f").encode()
    else:
        content = written_as(orjson.dumps(body).decode(), "j").encode()
        kind = kind or headers.setdefault("Content-Type", "application/json")
    return content
