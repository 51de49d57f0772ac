from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from executor.kernel.process.acting import Act, acting
from executor.open.engine import Engine


async def test_users_are_invited_changed_and_removed(weft: Callable[..., Any]) -> None:
    invited = await weft("user", "invite", "ada", "--role", "editor", "--name", "Ada")
    assert invited.exit_code == 0 and "/sign-in#" in invited.stdout and "within 10 minutes" in invited.stderr
    assert (await weft("user", "invite", "ada", "--role", "editor")).exit_code != 0
    again = await weft("user", "invite", "ada", "--role", "editor", "--again")
    assert "/sign-in#" in again.stdout and again.stdout != invited.stdout
    assert (await weft("user", "role", "ada", "viewer")).exit_code == 0
    assert (await weft("user", "list")).stdout.split()[:3] == ["ada", "viewer", "Ada"]
    assert (await weft("user", "remove", "ada")).exit_code == 0
    assert (await weft("user", "remove", "ada")).exit_code != 0


async def test_a_token_is_shown_once(weft: Callable[..., Any]) -> None:
    made = await weft("token", "create", "ci", "--role", "viewer", "--workflow", "hello", "--days", "3")
    token = made.stdout.strip()
    assert token.startswith("weft_") and "cannot be shown again" in made.stderr
    listed = await weft("token", "list")
    assert token not in listed.stdout and "only hello" in listed.stdout and "used never" in listed.stdout
    id = token.split("_")[1]
    assert (await weft("token", "revoke", id)).exit_code == 0
    assert (await weft("token", "revoke", id)).exit_code != 0


async def test_the_server_token_is_printed_as_before(weft: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_TOKEN", "a-token-that-is-long-enough")
    assert (await weft("token")).stdout == "a-token-that-is-long-enough\n"


async def test_the_audit_is_listed_and_verified(weft: Callable[..., Any], engine: Engine) -> None:
    assert "0 rows" in (await weft("audit", "verify")).stdout
    for object in ("/api/cache", "/api/drafts/1"):
        with acting(Act("user:ada", "session", "DELETE /x", object, 0, "detail")):
            await engine.store.record_act()
    lines = (await weft("audit", "--limit", "1")).stdout.splitlines()
    assert len(lines) == 1 and lines[0].endswith("user:ada           DELETE /api/drafts/1 (detail)")
    assert (await weft("audit", "--actor", "user:bob")).stdout.strip() == ""
    every = (await weft("audit", "--until", "2020-01-01")).stdout.splitlines()
    assert len(every) == 2
    assert (await weft("audit", "--since", "2020-01-01T10:30")).stdout.strip() == ""
    assert (await weft("audit", "--text", "no such thing")).stdout.strip() == ""
    assert (await weft("audit", "--before", "2")).stdout.splitlines() == every[1:]
    assert "does not match the format" in (await weft("audit", "--since", "yesterday")).stderr
    assert "2 rows, as they were written" in (await weft("audit", "verify")).stdout
