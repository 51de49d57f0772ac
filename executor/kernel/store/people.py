"""People, their tokens and sign-in links, and the record of what they did: what a store is asked for. See rules 39 to
41 of the contract."""

from __future__ import annotations

from typing import Protocol

from executor.kernel.store.topics.audit import EVERY_ROW, AuditFilter, AuditHead, AuditRow
from executor.kernel.store.topics.people import PersonRole, TokenRow, UserRow


class PeopleStore(Protocol):
    """See rules 39 to 41."""

    async def put_user(self, row: UserRow) -> bool:
        """Add a user. Returns False, with nothing changed, if there is one of this id or identity, or there are
        USERS_MAX."""

    async def get_user(self, id: str) -> UserRow | None: ...

    async def get_user_of(self, identity: str) -> UserRow | None: ...

    async def identify(self, id: str, identity: str) -> bool:
        """Give the user this identity. Returns False if there is no such user, they have one, or another user has
        it."""

    async def list_users(self) -> list[UserRow]:
        """Return users by id."""

    async def set_role(self, id: str, role: PersonRole) -> bool:
        """Set the role of a user. Returns False if there is no such user."""

    async def delete_user(self, id: str) -> bool:
        """Delete a user with their sessions, tokens and sign-in links. Returns False if there is no such user."""

    async def put_code(self, hash: str, user_id: str, until_ms: int, now_ms: int) -> bool:
        """True. Of a sign-in link. Codes whose time is over are deleted, and those next to end beyond CODES_MAX."""

    async def redeem_code(self, hash: str, now_ms: int) -> str | None:
        """Return the user that the code signs in, once, or None if it is not valid."""

    async def put_token(self, row: TokenRow) -> bool:
        """Add a token. Returns False, with nothing changed, if there are TOKENS_MAX, expired ones included."""

    async def get_token(self, id: str) -> TokenRow | None: ...

    async def list_tokens(self) -> list[TokenRow]:
        """Return tokens by the time they were made, and id."""

    async def use_token(self, id: str, now_ms: int) -> None:
        """Note that a token was used now; the time only grows."""

    async def delete_token(self, id: str) -> bool: ...

    async def read_audit(self, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        """Return audit rows in order."""

    async def list_audit(
        self, before: int | None = None, limit: int = 200, wanted: AuditFilter = EVERY_ROW
    ) -> list[AuditRow]:
        """Return audit rows below `before`, newest first."""

    async def audit_head(self) -> AuditHead | None:
        """Return the head, or None if no row was ever written."""

    async def note_act(self) -> bool:
        """A row of the present act that changes nothing else in the database."""
