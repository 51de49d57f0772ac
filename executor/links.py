"""Resume links. A token is derived, not stored: HMAC-SHA256 over (run, wait id) with the installation's secret, so
that the inbox
can show a link again after a restart, while the database holds only its hash."""

from __future__ import annotations

import base64
import hashlib
import hmac


class Links:
    def __init__(self, secret: bytes, base_url: str) -> None:
        assert len(secret) >= 16, "a short secret makes guessable links"
        self._secret = secret
        self._base_url = base_url.rstrip("/")

    def token(self, run: str, wait: str) -> str:
        """43 characters of [A-Za-z0-9_-]. The wait id names scope and attempt, so every opening has its own token."""
        digest = hmac.new(self._secret, f"resume\0{run}\0{wait}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def hash(self, token: str) -> str:
        """What the database knows of a token."""
        return hashlib.sha256(token.encode()).hexdigest()

    def url(self, run: str, wait: str) -> str:
        return f"{self._base_url}/resume/{self.token(run, wait)}"
