"""Links that answer waits, and which keys they may be made with. A token is derived, not stored: HMAC-SHA256 over
(purpose, run, wait id) with the installation's secret, so that the inbox can show a link again after a restart, while
the database holds only its hash.

There are two purposes: `resume` links are for people, `callback` addresses for programs. A token of one is unknown to
the other: both what is derived and what is looked for differ.

The rows of the database decide which keys of a process are valid, and whether it may start with them. A change of the
key has three parts: processes start with the new key and have the previous one; `engine.secrets.rekey` makes the new
one current, and gives the previous one an end; after it, nothing made with that key is valid.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

from executor.errors import DatabaseUnavailable, ReadOnly, WrongKey
from executor.kernel.process.clock import Clock
from executor.kernel.store.topics.secrets import Relinked
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow

Purpose = Literal["resume", "callback"]
Signed = Literal["notifications", "requests", "uploads"]
PATHS: dict[Purpose, str] = {"resume": "resume", "callback": "callbacks"}


class Links:
    """`secret` makes all that is new. Those `before` it, the last one first, are known: whether what was made with them
    counts is in the database (`executor.kernel.run.links`)."""

    def __init__(self, secret: bytes, base_url: str, before: Sequence[bytes] = ()) -> None:
        assert len(secret) >= 16, "a short secret makes links guessable"
        self._secret = secret
        self._secrets = (secret, *before)
        self._base_url = base_url.rstrip("/")
        self.key_ids = tuple(map(key_id, self._secrets))

    def token(self, run: str, wait: str, purpose: Purpose = "resume", *, secret: bytes | None = None) -> str:
        """43 characters of [A-Za-z0-9_-]. The wait id names scope and attempt, so every opening has its own token."""
        return _derived(secret or self._secret, f"{purpose}\0{run}\0{wait}")

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
        return "whsec_" + _derived(self._secrets[key], f"webhook\0{id}\0{generation}")

    def webhook_url(self, id: str) -> str:
        return f"{self._base_url}/hooks/{id}"

    def page_token(self, id: str, generation: int, key: int = 0) -> str:
        """Return the last part of the address of a public page: each generation has its own, and none is stored."""
        return _derived(self._secrets[key], f"page\0{id}\0{generation}")

    def page_url(self, kind: Literal["form", "chat"], name: str, id: str, generation: int) -> str:
        folder = "forms" if kind == "form" else kind
        return f"{self._base_url}/{folder}/{name}/{self.page_token(id, generation)}"


def _derived(secret: bytes, text: str) -> str:
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def token_of(text: str, purpose: Purpose = "resume") -> str:
    """Return the token in a link, or the text itself if it is no link."""
    _, found, token = text.rpartition(f"/{PATHS[purpose]}/")
    return token.partition("?")[0].rstrip("/") if found else text


def purpose_of(kind: str) -> Purpose:
    return "callback" if kind == "webhook" else "resume"


def key_id(master: bytes) -> str:
    """Return an id that differs between keys and reveals nothing about them."""
    return hmac.new(master, b"weft secrets id", hashlib.sha256).hexdigest()[:16]


LINKED: Final = ("approval", "form", "attention", "webhook")  # kinds of waits that links answer
RELINKED_AT_ONCE: Final = 100
TRIES, TRY_EVERY_S = 20, 0.5  # of the first look: what cannot be read at the moment may be read later
HINT: Final = (
    "start it with the key of this database (WEFT_SECRET_KEY, or the key file beside it). To change the key, put the "
    "one before into WEFT_OLD_SECRET_KEY; if that is lost, set WEFT_OLD_SECRET_KEY=lost"
)


class KeyTimes:
    def __init__(self, store: Store, links: Links, clock: Clock) -> None:
        self._store = store
        self._links = links
        self._clock = clock

    async def check(self, is_lost: bool = False) -> None:
        """Take the key if the database has none yet. `is_lost`: also if it has another one. Raises WrongKey."""
        mine = self._links.key_ids
        present = await self._present()
        if present is None:
            try:
                present = await self._store.claim_key(mine[0], self._clock.now_ms())
            except ReadOnly:
                return
        if present in mine:
            return
        if not is_lost:
            raise WrongKey("this process has another secret key than the database", hint=HINT)
        await self.change(0)

    async def _present(self) -> str | None:
        """Raises StoreError when the database cannot be read for a while."""
        for _ in range(TRIES):
            with suppress(DatabaseUnavailable):
                return next((row.id for row in await self._store.list_keys() if row.until_ms is None), None)
            await asyncio.sleep(TRY_EVERY_S)
        return next((row.id for row in await self._store.list_keys() if row.until_ms is None), None)

    async def old(self) -> list[int]:
        """Return the previous keys that are valid now, the latest first, as their places in `Links`."""
        if len(self._links.key_ids) == 1:
            return []
        now_ms = self._clock.now_ms()
        counting = {row.id for row in await self._store.list_keys() if row.until_ms is None or row.until_ms > now_ms}
        return [at for at, id in enumerate(self._links.key_ids) if at and id in counting]

    async def change(self, grace_ms: int) -> int:
        """Make the key of this process the current one; links of earlier keys stay valid for this time. Returns how
        many open waits have new links. It can be interrupted and repeated."""
        now_ms = self._clock.now_ms()
        await self._store.change_key(self._links.key_ids[0], now_ms, now_ms + grace_ms)
        return sum([await self._relink(kind) for kind in LINKED])

    async def _relink(self, kind: str) -> int:
        done, before = 0, None
        while rows := await self._store.list_waits("pending", None, RELINKED_AT_ONCE, kind=kind, before=before):
            before = rows[-1].run_id, rows[-1].id
            done += await self._store.relink(self._changes(rows))
        return done

    def _changes(self, rows: Sequence[WaitRow]) -> list[Relinked]:
        changes = []
        for row in rows:
            key = self._links.key_of(row.run_id, row.id, row.kind, row.token_hash)
            if key != 0:
                new = self._links.hash_of(row.run_id, row.id, row.kind)
                made_with = None if key is None else self._links.key_ids[key]
                changes.append(Relinked(row.run_id, row.id, row.token_hash, new, made_with))
        return changes
