"""Users, sessions, tokens and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from server.client.call import Call, call, present

if TYPE_CHECKING:
    from server.client.answers import (
        AuditPage,
        Invited,
        Me,
        SessionList,
        SessionsEnded,
        SignInLink,
        TokenList,
        TokenMade,
        TokenRevoked,
        UserChanged,
        UserList,
        Verified,
    )


class Users:
    """`/api/users`, `/api/me`."""

    @call
    def me(self) -> Call[Me]:
        """Return the user or token of this client, and its role."""
        return Call("GET", "/api/me")

    @call
    def users(self) -> Call[UserList]:
        """List users by id."""
        return Call("GET", "/api/users")

    @call
    def invite(self, id: str, role: str, name: str = "") -> Call[Invited]:
        """Add a user; the `url` signs them in, once."""
        return Call("POST", "/api/users", body={"id": id, "role": role, "name": name})

    @call
    def link_for(self, id: str) -> Call[Invited]:
        """Make a sign-in link as `invite` does, for an existing user."""
        return Call("POST", "/api/users/{id}/link", (id,))

    @call
    def set_role(self, id: str, role: str) -> Call[UserChanged]:
        """viewer, approver, editor or admin."""
        return Call("PUT", "/api/users/{id}/role", (id,), body={"role": role})

    @call
    def remove_user(self, id: str) -> Call[UserChanged]:
        """Remove a user with their sessions and tokens."""
        return Call("DELETE", "/api/users/{id}", (id,))


class Sessions:
    """Browsers that are signed in: `/api/sessions`, `/api/me/sessions`, `/api/users/{id}/sessions`."""

    @call
    def sign_in_link(self) -> Call[SignInLink]:
        """Make a sign-in link: its `url` signs one browser in, once."""
        return Call("POST", "/api/sign-in-links")

    @call
    def sessions(self) -> Call[SessionList]:
        """List the sessions of all users, seen last first."""
        return Call("GET", "/api/sessions")

    @call
    def end_session(self, session: str) -> Call[SessionsEnded]:
        """End a session of any user."""
        return Call("DELETE", "/api/sessions/{id}", (session,))

    @call
    def end_sessions(self, user: str | None = None) -> Call[SessionsEnded]:
        """End all sessions, or those of one user."""
        if user is None:
            return Call("DELETE", "/api/sessions")
        return Call("DELETE", "/api/users/{id}/sessions", (user,))

    @call
    def my_sessions(self) -> Call[SessionList]:
        """List the sessions of the user of this client."""
        return Call("GET", "/api/me/sessions")

    @call
    def end_my_sessions(self, session: str | None = None) -> Call[SessionsEnded]:
        """End one session of the user of this client, or all."""
        if session is None:
            return Call("DELETE", "/api/me/sessions")
        return Call("DELETE", "/api/me/sessions/{id}", (session,))


class Tokens:
    """`/api/tokens`."""

    @call
    def tokens(self) -> Call[TokenList]:
        """List tokens without their secrets, oldest first."""
        return Call("GET", "/api/tokens")

    @call
    def make_token(
        self, name: str, role: str, days: int = 90, workflows: Sequence[str] | None = None
    ) -> Call[TokenMade]:
        """Create a token. `token` is shown only in this answer. `workflows` are the only ones that it may reach; None
        for all."""
        only = None if workflows is None else list(workflows)
        return Call("POST", "/api/tokens", body={"name": name, "role": role, "days": days, "workflows": only})

    @call
    def revoke_token(self, id: str) -> Call[TokenRevoked]:
        """It is refused from now on."""
        return Call("DELETE", "/api/tokens/{id}", (id,))


class Audit:
    """`/api/audit`."""

    @call
    def audit(
        self,
        limit: int = 100,
        actor: str | None = None,
        *,
        text: str | None = None,
        since: int | None = None,
        until: int | None = None,
        before: int | None = None,
    ) -> Call[AuditPage]:
        """Newest first; `next` is the `before` of the following page. `actor`: such as `user:ada`; `text`: in action,
        object or detail; `since` and `until`: Unix milliseconds, `since` included."""
        params = present(limit=limit, actor=actor, text=text, since=since, until=until, before=before)
        return Call("GET", "/api/audit", params=params)

    @call
    def verify_audit(self) -> Call[Verified]:
        """Check that the rows of the audit are as they were written."""
        return Call("GET", "/api/audit/verification")
