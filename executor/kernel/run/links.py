"""Links that answer waits. A token is derived, not stored: HMAC-SHA256 over (purpose, run, wait id) with the
installation's secret, so that the inbox can show a link again after a restart, while the database holds only its hash.

There are two purposes: `resume` links are for people, `callback` addresses for programs. A token of one is unknown to
the other: both what is derived and what is looked for differ.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import Literal

Purpose = Literal["resume", "callback"]
Signed = Literal["notifications", "requests", "uploads"]
PATHS: dict[Purpose, str] = {"resume": "resume", "callback": "callbacks"}


class Links:
    """`secret` makes all that is new. Those `before` it, the last one first, are known: whether what was made with them
    counts is in the database (`executor.kernel.run.key_times`)."""

    def __init__(self, secret: bytes, base_url: str, before: Sequence[bytes] = ()) -> None:
        assert len(secret) >= 16, "a short secret makes links guessable"
        self._secret = secret
        self._secrets = (secret, *before)
        self._base_url = base_url.rstrip("/")
        self.key_ids = tuple(map(key_id, self._secrets))

    def token(self, run: str, wait: str, purpose: Purpose = "resume", *, secret: bytes | None = None) -> str:
        """43 characters of [A-Za-z0-9_-]. The wait id names scope and attempt, so every opening has its own token."""
        digest = hmac.new(secret or self._secret, f"{purpose}\0{run}\0{wait}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def hash(self, token: str, purpose: Purpose = "resume") -> str:
        """Return the hash of a token, which is what the database holds. That of a resume link is of the token alone."""
        known = token if purpose == "resume" else f"{purpose}\0{token}"
        return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()

    def hash_of(self, run: str, wait: str, kind: str) -> str:
        """Return the hash of the token of a wait of this kind."""
        purpose = purpose_of(kind)
        return self.hash(self.token(run, wait, purpose), purpose)

    def key_of(self, run: str, wait: str, kind: str, token_hash: str) -> int | None:
        """Return the number of the key that made the token with this hash (0 is the present one), or None if no key
        did."""
        purpose = purpose_of(kind)
        for at, secret in enumerate(self._secrets):
            if self.hash(self.token(run, wait, purpose, secret=secret), purpose) == token_hash:
                return at
        return None

    def url_of(self, run: str, wait: str, kind: str, token_hash: str) -> str | None:
        """Return the link of a wait that has this hash, or None if no key of this process makes it."""
        key, purpose = self.key_of(run, wait, kind, token_hash), purpose_of(kind)
        if key is None:
            return None
        token = self.token(run, wait, purpose, secret=self._secrets[key])
        return f"{self._base_url}/{PATHS[purpose]}/{token}"

    def url(self, run: str, wait: str, purpose: Purpose = "resume") -> str:
        return f"{self._base_url}/{PATHS[purpose]}/{self.token(run, wait, purpose)}"

    def signing_key(self, what: Signed = "notifications", key: int = 0) -> bytes:
        """Return the 32 bytes that sign requests of this server; they do not reveal the secret they are derived from.
        `notifications` are written by the server, `requests` by authors of workflows (`send` of a callback), `uploads`
        name who stored a file: a signature of one is invalid for the others."""
        return hmac.new(self._secrets[key], what.encode(), hashlib.sha256).digest()

    def webhook_secret(self, id: str, generation: int, key: int = 0) -> str:
        """Return the secret that senders sign with. Each generation has its own, and none is stored."""
        digest = hmac.new(self._secrets[key], f"webhook\0{id}\0{generation}".encode(), hashlib.sha256).digest()
        return "whsec_" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def webhook_url(self, id: str) -> str:
        return f"{self._base_url}/hooks/{id}"

    def page_token(self, id: str, generation: int, key: int = 0) -> str:
        """Return the last part of the address of a public page: each generation has its own, and none is stored."""
        digest = hmac.new(self._secrets[key], f"page\0{id}\0{generation}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def page_url(self, kind: Literal["form", "chat"], name: str, id: str, generation: int) -> str:
        folder = "forms" if kind == "form" else kind
        return f"{self._base_url}/{folder}/{name}/{self.page_token(id, generation)}"


def token_of(text: str, purpose: Purpose = "resume") -> str:
    """Return the token in a link, or the text itself if it is no link."""
    _, found, token = text.rpartition(f"/{PATHS[purpose]}/")
    return token.partition("?")[0].rstrip("/") if found else text


def purpose_of(kind: str) -> Purpose:
    return "callback" if kind == "webhook" else "resume"


def key_id(master: bytes) -> str:
    """Return an id that differs between keys and reveals nothing about them."""
    return hmac.new(master, b"weft secrets id", hashlib.sha256).hexdigest()[:16]
