"""Users who sign in at the provider: the account that a sign-in opens, and its role."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec.structs import replace

from executor.kernel.store.topics.people import PEOPLE_ROLES, PersonRole, UserRow
from executor.kernel.store.topics.store import Store
from server.oidc.settings import OidcSettings

ID = re.compile(r"[a-z0-9][a-z0-9._@-]{0,99}")
NAME_CHARS_MAX = 200


class NotAdmitted(Exception):
    """The user may not sign in. The text is the reason, for the user."""


async def admit(store: Store, settings: OidcSettings, claims: Mapping[str, Any], now_ms: int) -> UserRow:
    """Return the user with these claims: one with this issuer and subject, else one invited under the verified address,
    else a new one. The role from groups is updated at each sign-in. Raises NotAdmitted."""
    email = _verified_email(claims)
    if settings.domains and (email is None or not _is_in(email, settings.domains)):
        raise NotAdmitted("Your address is not in a domain that may sign in here.")
    role = _role(settings, claims)
    if settings.groups and role is None:
        raise NotAdmitted("You are in no group that may sign in here.")
    identity = f"{settings.issuer} {claims['sub']}"
    user = await store.get_user_of(identity)
    if user is None and email is not None and await store.identify(email, identity):
        user = await store.get_user_of(identity)
    if user is None:
        return await _new(store, email, identity, claims, role, now_ms)
    if not settings.groups or role is None or role == user.role:
        return user
    await store.set_role(user.id, role)
    return replace(user, role=role)


async def _new(
    store: Store, email: str | None, identity: str, claims: Mapping[str, Any], role: PersonRole | None, now_ms: int
) -> UserRow:
    """Create a user. Documents name people by `id`, so users cannot choose it: it is a verified address, or derived
    from the identity."""
    if role is None:
        raise NotAdmitted(f"There is no user {email or 'for you'} here. Ask an admin for an invitation.")
    own = f"oidc-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    said = claims.get("name")
    name = said[:NAME_CHARS_MAX] if isinstance(said, str) and said.isprintable() and said.strip() else None
    for id in filter(None, (email, own)):
        row = UserRow(id, name or email or id, role, now_ms, identity)
        if await store.put_user(row):
            return row
    user = await store.get_user_of(identity)  # made by another process at the same moment
    if user is None:
        raise NotAdmitted("There are too many users here.")
    return user


def _role(settings: OidcSettings, claims: Mapping[str, Any]) -> PersonRole | None:
    said = claims.get(settings.groups_claim)
    groups = said if isinstance(said, list) else [said]
    found = [role for group, role in settings.roles.items() if group in groups]
    return max(found, key=PEOPLE_ROLES.index) if found else cast("PersonRole | None", settings.role)


def _verified_email(claims: Mapping[str, Any]) -> str | None:
    """Return the address in lower case, if it can be the id of a user. Some providers send `true` in quotes."""
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified") not in (True, "true"):
        return None
    email = email.lower()
    return email if ID.fullmatch(email) and email.count("@") == 1 else None


def _is_in(email: str, domains: tuple[str, ...]) -> bool:
    return email.rpartition("@")[2] in {domain.lower() for domain in domains}
