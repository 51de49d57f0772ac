from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from executor.blocks.http.binding import checked_hosts
from executor.blocks.vault.connection import NAME, Connection, Provider
from executor.blocks.vault.oauth import KnownProvider, known_providers
from executor.service.topics.connections import _check


def test_they_have_names_of_their_own() -> None:
    ids = [each.id for each in known_providers()]
    assert {"github", "google", "slack", "notion", "linear", "discord", "microsoft"} <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("known", known_providers(), ids=lambda known: known.id)
def test_a_connection_can_be_made_of_each(known: KnownProvider) -> None:
    assert NAME.fullmatch(known.id)
    there = Provider(
        known.token_url,
        "a client",
        known.authorize_url,
        known.scopes,
        known.issuer,
        known.client_auth,
        known.parameters,
        known.pkce,
    )
    _check(Connection("oauth2_code", "a secret of the client", provider=there))
    assert checked_hosts(known.hosts) == known.hosts
    # Only tokens of the provider's own services: never one that covers a whole top-level domain.
    assert all(re.fullmatch(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+", host) for host in known.hosts)
    for address in (known.authorize_url, known.token_url, known.docs):
        assert urlsplit(address).scheme == "https"
        assert not urlsplit(address).query
