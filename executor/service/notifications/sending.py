"""Sends a message as a signed request, and computes the pause before the next try."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final

import orjson

from executor.blocks.http.binding import opened_bytes
from executor.blocks.http.handles import written_as
from executor.errors import BlockError, StoreError
from executor.kernel.run.links import Signed
from executor.kernel.values.redact import Redactor
from executor.service.parts import Parts

REQUEST_S: Final = 15.0
# 5 s, 20 s, 80 s, 5 min, 21 min, 1 h, 1 h: after two and a half hours the receiver is gone.
ATTEMPTS_MAX: Final = 8
BACK_OFF_MS: Final = 5_000
BACK_OFF_FACTOR: Final = 4
BACK_OFF_MAX_MS: Final = 3_600_000
JITTER: Final = 0.1
IDLE_MAX_S: Final = 5.0  # another process may have written a message
ERROR_CHARS_MAX: Final = 500
_RETRYABLE: Final = frozenset({408, 425, 429})


async def post_signed(
    parts: Parts, url: str, method: str, headers: Mapping[str, str], body: dict[str, Any], what: Signed, key: str
) -> None:
    """Send a signed request. `key`: the Idempotency-Key, the same in each try. While the previous key is valid,
    receivers may have only that one: it still signs, and the present one signs in addition. Raises BlockError."""
    content = opened_bytes(
        written_as(orjson.dumps(body).decode(), "j").encode()
    )  # exactly the bytes that are sent are signed
    at_s = parts.clock.now_ms() // 1000
    own = {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "X-Weft-Timestamp": str(at_s),
        "X-Weft-Signature": sign(parts.links.signing_key(what), at_s, content),
    }
    try:
        old = await parts.key_times.old()
    except StoreError as error:
        raise BlockError(f"the database cannot be read: {error}", retryable=True) from error
    if old:
        own["X-Weft-Signature-New"] = own["X-Weft-Signature"]
        own["X-Weft-Signature"] = sign(parts.links.signing_key(what, old[0]), at_s, content)
    custom = {name: value for name, value in headers.items() if name.lower() not in {one.lower() for one in own}}
    try:
        answer = await parts.services.http.request(
            method,
            url,
            headers={**custom, **own},
            content=content,
            timeout_s=REQUEST_S,
            max_bytes=64 * 1024,
            waiting=None,  # the outbox has a bound; a lease runs, so it must not wait for blocks
        )
    except BlockError as error:
        if error.code == "response_too_large":
            return  # accepted; the content of the answer does not matter
        raise BlockError(_without_path(error.message, url), code=error.code, retryable=error.retryable) from None
    if answer.status >= 400:
        raise BlockError(
            f"{_place(url)} answered {answer.status}",
            code="http_status",
            retryable=answer.status >= 500 or answer.status in _RETRYABLE,
        )


def sign(key: bytes, at_s: int, body: bytes) -> str:
    """Return `v1=` and the hexadecimal HMAC-SHA256 of `<seconds>.<body>`."""
    return "v1=" + hmac.new(key, b"%d." % at_s + body, hashlib.sha256).hexdigest()


def back_off_ms(attempts: int, chance: float) -> int:
    """Return the pause after attempt number `attempts`; `chance` in 0..1 spreads it."""
    pause = float(min(BACK_OFF_MS * BACK_OFF_FACTOR ** (attempts - 1), BACK_OFF_MAX_MS))
    return round(pause * (1 + JITTER * (2 * chance - 1)))


def _place(url: str) -> str:
    import httpx  # loaded by the client, with the first request

    parsed = httpx.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode()}"


def _without_path(text: str, url: str) -> str:
    """Remove the address of a webhook, which is a credential: errors name only its server."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return text
    return Redactor([url, parsed.path, parsed.raw_path.decode("ascii", "replace")]).redact(text)
