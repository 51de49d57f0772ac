"""The settings of the provider: WEFT_OIDC_*."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import cast
from urllib.parse import urlsplit

from msgspec import Struct

from executor.kernel.process.extras import install
from executor.kernel.store.topics.people import PEOPLE_ROLES, PersonRole
from server.reach import SettingsError, is_loopback

SCOPES = ("openid", "email", "profile")


class OidcSettings(Struct, frozen=True):
    """`issuer` as the provider spells it. `role`: for people who sign in for the first time and are in no group of
    `groups`; if it is None they are refused unless they were invited. `groups`: `group=role`. `private`: the provider
    may be at a private address."""

    issuer: str
    client_id: str = ""
    client_secret: str | None = None
    name: str | None = None
    role: str | None = None
    domains: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    groups_claim: str = "groups"
    scopes: tuple[str, ...] = SCOPES
    private: bool = False

    @property
    def label(self) -> str:
        return self.name or urlsplit(self.issuer).netloc

    @property
    def roles(self) -> dict[str, PersonRole]:
        return {
            group.strip(): cast(PersonRole, role.strip())
            for group, _, role in (each.rpartition("=") for each in self.groups)
        }

    @property
    def place(self) -> str:
        """`host:port` of the provider, as in WEFT_ALLOW_PRIVATE."""
        url = urlsplit(self.issuer)
        host = url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def check(self) -> None:
        try:
            url = urlsplit(self.issuer)
            host = url.hostname or ""
            _ = url.port
        except ValueError:
            raise SettingsError("WEFT_OIDC_ISSUER must be a URL") from None
        if not host or re.search(r"\s", self.issuer) or url.query or url.fragment or "@" in url.netloc:
            raise SettingsError("WEFT_OIDC_ISSUER must be a URL without a query: https://accounts.example.com")
        if url.scheme != "https" and not (url.scheme == "http" and is_loopback(host)):
            raise SettingsError("WEFT_OIDC_ISSUER must start with https://")
        if not self.client_id:
            raise SettingsError("WEFT_OIDC_ISSUER needs WEFT_OIDC_CLIENT_ID")
        if self.role is not None and self.role not in PEOPLE_ROLES:
            raise SettingsError(f"WEFT_OIDC_ROLE must be one of {', '.join(PEOPLE_ROLES)}, not {self.role!r}")
        for group, role in self.roles.items():
            if not group or role not in PEOPLE_ROLES:
                raise SettingsError(
                    f"WEFT_OIDC_GROUPS must be group=role, separated by commas, with roles {', '.join(PEOPLE_ROLES)}"
                )
        for domain in self.domains:
            if not re.fullmatch(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", domain):
                raise SettingsError(f"WEFT_OIDC_DOMAINS must be domains separated by commas, not {domain!r}")
        if "openid" not in self.scopes:
            raise SettingsError("WEFT_OIDC_SCOPES must have openid")
        if find_spec("joserfc") is None:
            raise SettingsError(f"WEFT_OIDC_ISSUER needs a library: {install('oidc')}")
