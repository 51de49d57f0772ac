"""The sender of a request: its role, and what it may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from executor.kernel.process.acting import Reach, Role, includes
from executor.kernel.run.answers import Answerer, needs_sign_in
from executor.service.views import WaitView

SERVER: Final = "server-token"
FIRST_ADMIN: Final = "admin"  # the user that the server's token signs in


class Principal(Struct, frozen=True):
    """The sender of a request. `actor` is the name in records, `via` the kind of credential. `key` identifies the
    session or token, which must stay valid while a stream is open. `workflows` lists the only ones it may reach, or is
    None for all."""

    actor: str
    via: str
    role: Role
    user: str | None = None
    key: str | None = None
    workflows: tuple[str, ...] | None = None

    def may(self, needed: Role) -> bool:
        return includes(self.role, needed)

    @property
    def answerer(self) -> Answerer:
        """The name it answers as. The holder of the server's token and the user that it signs in are the same
        person."""
        names = {self.actor} | ({f"user:{self.user}"} if self.user else set())
        if names & {SERVER, f"user:{FIRST_ADMIN}"}:
            names |= {SERVER, f"user:{FIRST_ADMIN}"}
        return Answerer(self.actor if self.user is None else f"user:{self.user}", frozenset(names), self.role)

    @property
    def reach(self) -> Reach | None:
        """The workflows whose files it may name, or None for all."""
        return None if self.workflows is None else Reach(self.workflows, (self.actor,))

    @property
    def is_signed_in(self) -> bool:
        """In a browser."""
        return self.via == "session"


def of_session(user: str, role: Role, session: str) -> Principal:
    return Principal(f"user:{user}", "session", role, user, session)


def without_links(who: Principal, waits: Sequence[WaitView]) -> tuple[WaitView, ...]:
    """Remove the links that this principal may not see: a link is a credential. Approvers see those that they
    may use."""
    return tuple(wait if _may_see_link(who, wait) else replace(wait, link=None) for wait in waits)


def _may_see_link(who: Principal, wait: WaitView) -> bool:
    if who.workflows is not None and wait.workflow not in who.workflows:
        return False
    if who.may("editor"):
        return True
    by = wait.request.get("by") if isinstance(wait.request, dict) and needs_sign_in(wait.request) else None
    return who.may("approver") and (not by or who.answerer.is_among(by))
