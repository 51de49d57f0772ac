"""The shapes of signing in that cross HTTP."""

from __future__ import annotations

from msgspec import Struct


class LoginRequest(Struct, forbid_unknown_fields=True):
    """POST /login. `code`: of a sign-in link."""

    token: str | None = None
    code: str | None = None


class SignInLink(Struct, frozen=True):
    """`url` signs in one browser, once, within `expires_in_s` seconds."""

    url: str
    expires_in_s: int


class SignedIn(Struct, frozen=True):
    signed_in: bool


class SessionsEnded(Struct, frozen=True):
    ended: int
