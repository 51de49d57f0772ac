"""AWS Signature Version 4, for storage that speaks the protocol of S3. The whole body is signed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

from executor.blocks.http.binding import derived
from executor.blocks.types.params import invalid

ALGORITHM: Final = "AWS4-HMAC-SHA256"


def query_text(query: Mapping[str, str]) -> str:
    """Format the query as it is signed and sent: sorted, and percent-encoded without plus signs."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def signed(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credential: str,
    region: str,
    service: str,
    now_ms: int,
) -> dict[str, str]:
    """Return the headers to send. The query in `url` is as `query_text` writes it. Raises
    BlockError(params_invalid)."""
    parts = urlsplit(url)
    stamp = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    sent = {**headers, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    named = sorted((name.lower(), " ".join(value.split())) for name, value in {**sent, "host": parts.netloc}.items())
    names = ";".join(name for name, _ in named)
    lines = [method, parts.path or "/", parts.query, *(f"{name}:{value}" for name, value in named), "", names, digest]
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()))

    def authorization(opened: str) -> str:
        key_id, colon, secret = opened.partition(":")
        if not colon or not key_id or not secret:
            raise invalid("the credential must be the id of the key, a colon and the secret key")
        key = f"AWS4{secret}".encode()
        for part in (stamp[:8], region, service, "aws4_request", text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return f"{ALGORITHM} Credential={key_id}/{scope},SignedHeaders={names},Signature={key.hex()}"

    return {**sent, "Authorization": derived(credential, authorization)}
