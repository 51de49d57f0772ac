"""Requests that start runs: checks who sent one, and selects the part that the run sees.

Pure functions over names, texts and bytes; receiving requests is the server's part. The schemes:

hmac    X-Weft-Timestamp: Unix seconds, at most 300 from now. X-Weft-Signature: `v1=` and the hexadecimal HMAC-SHA256 of
        timestamp, a dot, and the body as it was sent, keyed with the secret's text. X-Weft-Delivery: a name, optional
github  X-Hub-Signature-256: `sha256=` and the hexadecimal HMAC-SHA256 of the body. X-GitHub-Delivery: a name
token   Authorization: Bearer and the secret. X-Weft-Delivery: a name, optional
none    no proof is needed

A connector describes the scheme of its service in the same way.

The sender's name for a delivery is not signed, so it proves nothing: a signed delivery is the same again when its
signature is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from executor.blocks.connectors.document import Scheme
from executor.blocks.connectors.pages import at
from executor.blocks.types.webhook import header_problem
from executor.errors import BadRequest, DeliveryRefused
from executor.kernel.store.topics.webhooks import Auth

SKEW_S_MAX: Final = 300
SCHEMES: Final[dict[Auth, Scheme]] = {
    "token": Scheme("token", "authorization", "bearer ", name="x-weft-delivery"),
    "hmac": Scheme("hmac", "x-weft-signature", "v1=", "X-Weft-Timestamp", name="x-weft-delivery"),
    "github": Scheme("hmac", "x-hub-signature-256", "sha256=", name="x-github-delivery"),
}
DELIVERY_NAME: Final = re.compile(r"[\x21-\x7e]{1,200}")
QUERY_FIELDS_MAX: Final = 200
# Headers that every run sees.
PASSED: Final = frozenset(
    [
        "ce-id", "ce-source", "ce-subject", "ce-time", "ce-type", "content-type", "idempotency-key", "user-agent",
        "x-event-type", "x-github-delivery", "x-github-event", "x-github-hook-id", "x-gitlab-event", "x-request-id",
        "x-weft-delivery", "x-weft-timestamp",
    ]
)  # fmt: skip


class Received(Struct, frozen=True):
    """A request as it came: header names in lower case, the query's fields in order, the body's bytes."""

    method: str
    headers: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: bytes


class Proof(Struct, frozen=True):
    """`delivery` is the sender's name for the delivery, or None if there is none. `digest` is that of the signature, or
    None."""

    delivery: str | None
    digest: str | None


def prove(auth: Auth | Scheme, secret: str | None, request: Received, now_ms: int) -> Proof:
    """Check the proof of a request. Raises DeliveryRefused, and BadRequest for an invalid delivery name. `secret` is
    None if it is not known here, so nothing can be proved with it."""
    if auth == "none":
        return Proof(_delivery(request.headers, "x-weft-delivery"), None)
    scheme, digest = SCHEMES[auth] if isinstance(auth, str) else auth, None
    if scheme.kind == "hmac":
        signature = _check_signature(scheme, secret, request, now_ms)
        digest = hashlib.sha256(f"{auth}\0{signature}".encode()).hexdigest()
    elif secret is None or not _has_token(scheme, secret, request):
        what = "bearer token" if isinstance(auth, str) else "secret"
        raise DeliveryRefused(f"the {what} is missing or wrong", code="token_invalid")
    return Proof(_delivery(request.headers, scheme.name), digest)


def _has_token(scheme: Scheme, secret: str, request: Received) -> bool:
    if scheme.kind == "token":
        value = request.headers.get(scheme.header, "")
        return value.lower().startswith(scheme.prefix) and same(value[len(scheme.prefix) :].strip(), secret)
    items = at(scheme.items, body_of(request))
    given = [at(scheme.at, item) for item in items] if isinstance(items, list) else []
    return bool(given) and all(isinstance(one, str) and same(one, secret) for one in given)


def _check_signature(scheme: Scheme, secret: str | None, request: Received, now_ms: int) -> str:
    """Return the signature, which is that of the body."""
    value = request.headers.get(scheme.header, "")
    signed, stamp = request.body, ""
    if scheme.stamp:
        parts = [part.strip() for part in value.split(",")]
        found = (part.removeprefix(scheme.stamp) for part in parts if part.startswith(scheme.stamp))
        is_part = scheme.stamp.endswith("=")
        stamp = next(found, "") if is_part else request.headers.get(scheme.stamp.lower(), "")
        value = next((part for part in parts if part.startswith(scheme.prefix)), "") if is_part else value
        if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 12):
            what = f"the header {scheme.stamp if not is_part else scheme.header}"
            raise DeliveryRefused(f"{what} is missing or is not a time in Unix seconds", code="signature_missing")
        signed = stamp.encode() + b"." + signed
    if not value or not value.startswith(scheme.prefix):
        raise DeliveryRefused(
            f"the header {scheme.header} is missing or does not start with {scheme.prefix!r}", code="signature_missing"
        )
    signature = value.removeprefix(scheme.prefix).strip()
    signature = signature.lower() if scheme.encoding == "hex" else signature
    if secret is None or not same(signature, _signed(scheme, secret, signed)):
        raise DeliveryRefused("the signature does not match the body and the secret of this webhook")
    # Checked last: a sender without the secret need not learn our clock.
    if stamp and abs(now_ms / 1000 - int(stamp)) > SKEW_S_MAX:
        raise DeliveryRefused(
            f"the signature is more than {SKEW_S_MAX} seconds old or in the future",
            code="signature_expired",
            hint="sign each request when it is sent, and check the clock of the sender",
        )
    return signature


def _signed(scheme: Scheme, secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret) if scheme.key == "base64" else secret.encode()
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return digest.hex() if scheme.encoding == "hex" else base64.b64encode(digest).decode()


def sign(secret: str | bytes, body: bytes, timestamp_s: int) -> str:
    key = secret.encode() if isinstance(secret, str) else secret
    return "v1=" + hmac.new(key, b"%d." % timestamp_s + body, hashlib.sha256).hexdigest()


def envelope(request: Received, more_headers: Iterable[str], delivery: str, now_ms: int) -> dict[str, Any]:
    """Return the output of a `webhook` block. Raises BadRequest for a body that is labelled JSON and is not."""
    passed = PASSED | {name.lower() for name in more_headers if header_problem(name) is None}
    return {
        "body": body_of(request),
        "headers": {name: value for name, value in request.headers.items() if name in passed},
        "query": _fields(request.query),
        "method": request.method,
        "delivery": delivery,
        "received_at": now_ms,
    }


def body_of(request: Received) -> Any:
    if not request.body:
        return None
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "application/json" or media.endswith("+json"):
        try:
            return orjson.loads(request.body)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"the body is not JSON: {error}", code="malformed_json", pointer="") from None
    try:
        return request.body.decode()
    except UnicodeDecodeError:
        hint = "send JSON or UTF-8 text; for a file, send a URL from which a block can fetch it"
        raise BadRequest("the body is not UTF-8 text", code="body_not_text", hint=hint) from None


def _fields(query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    if len(query) > QUERY_FIELDS_MAX:
        raise BadRequest(f"the query has more than {QUERY_FIELDS_MAX} fields", code="query_too_long")
    fields: dict[str, Any] = {}
    for name, value in query:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _delivery(headers: Mapping[str, str], name: str) -> str | None:
    value = headers.get(name)
    if value is not None and not DELIVERY_NAME.fullmatch(value):
        raise BadRequest(f"the header {name} must have 1 to 200 visible characters", code="delivery_invalid")
    return value


def same(value: str, wanted: str) -> bool:
    """Compare in constant time, for any lengths."""
    return hmac.compare_digest(hashlib.sha256(value.encode()).digest(), hashlib.sha256(wanted.encode()).digest())
