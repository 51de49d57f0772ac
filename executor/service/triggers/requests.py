"""Requests that start runs: checks who sent one, and selects the part that the run sees.

Pure functions over names, texts and bytes; receiving requests is the server's part. The schemes:

hmac    X-Weft-Timestamp: Unix seconds, at most 300 from now. X-Weft-Signature: `v1=` and the hexadecimal HMAC-SHA256 of
        timestamp, a dot, and the body as it was sent, keyed with the secret's text. X-Weft-Delivery: a name, optional
github  X-Hub-Signature-256: `sha256=` and the hexadecimal HMAC-SHA256 of the body. X-GitHub-Delivery: a name
token   Authorization: Bearer and the secret. X-Weft-Delivery: a name, optional
none    no proof is needed

The sender's name for a delivery is not signed, so it proves nothing: a signed delivery is the same again when its
signature is.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from executor.blocks.types.webhook import header_problem
from executor.errors import BadRequest, DeliveryRefused
from executor.kernel.store.topics.webhooks import Auth

SKEW_S_MAX: Final = 300
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


def prove(auth: Auth, secret: str | None, request: Received, now_ms: int) -> Proof:
    """Check the proof of a request. Raises DeliveryRefused, and BadRequest for an invalid delivery name. `secret` is
    None if it is not known here, so nothing can be proved with it."""
    headers = request.headers
    match auth:
        case "none":
            return Proof(_delivery(headers, "x-weft-delivery"), None)
        case "token":
            scheme, _, value = headers.get("authorization", "").partition(" ")
            if secret is None or scheme.lower() != "bearer" or not same(value.strip(), secret):
                raise DeliveryRefused("the bearer token is missing or wrong", code="token_invalid")
            return Proof(_delivery(headers, "x-weft-delivery"), None)
        case "hmac":
            stamp = headers.get("x-weft-timestamp", "")
            signature = _signature(headers, "x-weft-signature", "v1=")
            if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 12):
                raise DeliveryRefused(
                    "the header X-Weft-Timestamp is missing or is not a time in Unix seconds", code="signature_missing"
                )
            _compare(signature, secret, stamp.encode() + b"." + request.body)
            # Checked last: a sender without the secret need not learn our clock.
            if abs(now_ms / 1000 - int(stamp)) > SKEW_S_MAX:
                raise DeliveryRefused(
                    f"the signature is more than {SKEW_S_MAX} seconds old or in the future",
                    code="signature_expired",
                    hint="sign each request when it is sent, and check the clock of the sender",
                )
            return Proof(_delivery(headers, "x-weft-delivery"), _digest(auth, signature))
        case "github":
            signature = _signature(headers, "x-hub-signature-256", "sha256=")
            _compare(signature, secret, request.body)
            return Proof(_delivery(headers, "x-github-delivery"), _digest(auth, signature))


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


def _signature(headers: Mapping[str, str], name: str, prefix: str) -> str:
    value = headers.get(name, "")
    if not value.startswith(prefix):
        raise DeliveryRefused(
            f"the header {name} is missing or does not start with {prefix!r}", code="signature_missing"
        )
    return value.removeprefix(prefix).strip().lower()


def _compare(signature: str, secret: str | None, signed: bytes) -> None:
    if secret is None or not same(signature, hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()):
        raise DeliveryRefused("the signature does not match the body and the secret of this webhook")


def same(value: str, wanted: str) -> bool:
    """Compare in constant time, for any lengths."""
    return hmac.compare_digest(hashlib.sha256(value.encode()).digest(), hashlib.sha256(wanted.encode()).digest())


def _digest(auth: str, signature: str) -> str:
    return hashlib.sha256(f"{auth}\0{signature}".encode()).hexdigest()
