"""`weft connection add --provider`: what the server knows of a provider, under what the command says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from executor.blocks.vault.connection import PREFIX, opened
from executor.open.engine import Engine

SECRET = "the secret of a client"


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
