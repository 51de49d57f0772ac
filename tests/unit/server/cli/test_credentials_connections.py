"""`weft connection add --provider`: what the server knows of a provider, under what the command says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from executor.blocks.vault.connection import PREFIX, opened
from executor.open.engine import Engine
from server.settings import Settings
from tests.support.documents import connector
from tests.support.endpoints import Request, answer
from tests.support.endpoints import http as served

SECRET = "the secret of a client"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, allow_private=("127.0.0.0/8",))


async def test_a_known_provider_fills_in_what_is_not_said(weft: Callable[..., Any], engine: Engine) -> None:
    arguments = ("connection", "add", "docs", "--provider", "notion", "--client-id", "1234")
    made = await weft(*arguments, "--scopes", "pages", input=SECRET)
    assert made.exit_code == 0, made.output
    assert "docs  oauth2_code  needs a sign-in  api.notion.com" in made.stdout
    [row] = await engine.store.get_secrets([PREFIX + "docs"])
    provider = opened(engine.parts.vault.need_keys(), row).provider
    assert provider is not None
    assert (provider.client_id, provider.scopes, provider.client_auth, provider.pkce) == (
        "1234",
        "pages",
        "header",
        False,
    )
    assert provider.parameters == {"owner": "user"} and provider.token_url == "https://api.notion.com/v1/oauth/token"


async def test_what_does_not_fit(weft: Callable[..., Any], engine: Engine) -> None:
    for arguments, said in (
        (("--provider", "myspace"), "there are github, google"),
        (("--provider", "slack", "--public"), "Slack has no clients without a secret"),
        (("--provider", "github", "--kind", "bearer"), "--provider is for connections of kind oauth2_code"),
        (("--hosts", "api.example.com"), "--kind or --provider is required"),
        (("--kind", "bearer"), "--hosts is required"),
    ):
        refused = await weft("connection", "add", "crm", *arguments, input=SECRET)
        assert refused.exit_code != 0 and said in refused.output, refused.output
    assert await engine.connections.all() == []


async def test_a_test_says_who_one_is_or_fails(weft: Callable[..., Any], engine: Engine) -> None:
    def play(request: Request) -> bytes:
        good = request.headers.get("authorization") == f"Bearer {SECRET}"
        return answer(200 if good else 401, b'{"me": "grace"}', content_type="application/json")

    async with served(play) as service:
        document = connector("tea", service.url) | {"sign_in": {"path": "/me", "who": ["/me"]}}
        await engine.connectors.put("tea", document)
        where = ("--kind", "bearer", "--hosts", f"http://{service.place}")
        assert (await weft("connection", "add", "crm", *where, input=SECRET)).exit_code == 0
        good = await weft("connection", "test", "crm")
        assert good.exit_code == 0, good.output
        assert good.stdout.startswith(f"GET {service.url}/me answered 200 in ") and "as grace" in good.stdout
        assert (await weft("connection", "add", "crm", *where, input="another secret")).exit_code == 0
        bad = await weft("connection", "test", "crm", "--service", "tea")
        assert bad.exit_code == 1 and "answered 401" in bad.stdout
        added = ("connection", "add", "own", *where, "--check-url", f"{service.url}/me")
        assert (await weft(*added, input=SECRET)).exit_code == 0
        there = await weft("connection", "test", "crm", "--service", "tea", "--base-url", f"{service.url}/v2")
        assert there.exit_code == 1 and f"{service.url}/v2/me answered 401" in there.stdout
        elsewhere = ("connection", "add", "other", "--kind", "bearer", "--hosts", "other.example")
        assert (await weft(*elsewhere, input=SECRET)).exit_code == 0
        assert "name its connector with --service" in (await weft("connection", "test", "other")).stdout
        assert "needs --service" in (await weft("connection", "test", "crm", "--base-url", service.url)).output
        own = await weft("connection", "test", "own", "--json")
        assert '"outcome": "ok"' in own.stdout and SECRET not in own.output + good.output + bad.output
