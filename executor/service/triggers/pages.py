"""Public pages, which are rows of the webhooks: which one an address means."""

from __future__ import annotations

import hashlib
import hmac

from executor.errors import NotFound
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.service.parts import Parts


class PageTokens:
    """The token in an address proves that the visitor has the link; no other proof is needed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def row(self, id: str, token: str, message: str, code: str) -> WebhookRow:
        """Return the row of a page. Raises NotFound, which does not reveal if the id or the token is wrong."""
        row = await self._parts.store.get_webhook(id)
        generation = row.generation if row is not None else 0
        links = self._parts.links
        if row is not None and _same(token, links.page_token(id, generation)):
            return row
        for key in await self._parts.key_times.old():
            if row is not None and _same(token, links.page_token(id, generation, key)):
                return row
        raise NotFound(message, code=code)


def _same(token: str, wanted: str) -> bool:
    """Compare in constant time, for any lengths."""
    sent = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(sent, hashlib.sha256(wanted.encode()).digest())
