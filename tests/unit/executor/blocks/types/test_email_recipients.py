"""What references put into the addresses of a mail adds no recipient, whatever it is."""

from __future__ import annotations

from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import MailSettings, Services
from executor.blocks.types.registry import Registry
from executor.open.engine import Engine
from tests.support.endpoints import smtp
from tests.support.model_store.store import ModelStore

EVIL = "v@evil.test"
NAMES = [
    f"{EVIL},", f"{EVIL};", f"{EVIL}, x", f"a <{EVIL}>, b", f"a <{EVIL}>; b", f'"{EVIL}, "', f'x" <{EVIL}>, "y',
    f"x: {EVIL}, y", f"team: {EVIL};", f"<{EVIL}>", f"({EVIL})", f"{EVIL} ", f",{EVIL},", f'"a" <{EVIL}>, ',
    f"\\\", {EVIL}, \\\"", f"Jürgen, {EVIL},", f"=?utf-8?q?{EVIL}=2C?=,", f"ü <{EVIL}>,", "Doe, Jane",
    "Jürgen Müß, Dr.", 'Ann "Ace" Lee', "a\tb", "x\u2028y",
]  # fmt: skip
ADDRESSES = [
    f"boss@corp.example, {EVIL}", f"boss@corp.example;{EVIL}", f"g: boss@corp.example, {EVIL};",
    f"boss@corp.example {EVIL}", f"<boss@corp.example>,{EVIL}", f"@{EVIL}:boss@corp.example",
    f"boss@corp.example\n{EVIL}", f"boss@corp.example(,{EVIL})", f"=?utf-8?q?boss?=@corp.example,{EVIL}",
]  # fmt: skip
# The last address counts, and what stands before it is a name: still one.
ONE = [f"<boss@corp.example>,<{EVIL}>", f"boss@corp.example>,<{EVIL}", f"Boss <boss@corp.example>, <{EVIL}>"]


async def _sent(to: Any, item: str, env: dict[str, str] | None = None) -> tuple[str, list[list[str]], list[bytes]]:
    """How the run ended, and of each mail its recipients and its bytes."""
    document = {
        "format": "weft/1",
        "blocks": {
            "start": {"type": "start"},
            "mail": {"type": "email", "params": {"to": to, "subject": "Hi", "body": "x"}},
        },
        "edges": [{"source": "start", "target": "mail"}],
    }
    async with smtp() as server:
        sandbox = Sandbox(threads=1)
        mail = MailSettings("smtp", "weft@corp.example", "127.0.0.1", server.port, start_tls=False)
        services = Services(sandbox=sandbox, http=GuardedClient(), mail=mail, env=env or {})
        engine = await Engine.open(ModelStore(), registry=Registry.load(sandbox=sandbox), services=services)
        try:
            view = await engine.run(document, {"item": item}, timeout_s=60)
        finally:
            await engine.close(grace_s=1)
    return view.status, [one.recipients for one in server.mails], [one.data for one in server.mails]


def _headed(data: bytes) -> list[str]:
    """The addresses that a mail program reads in the head `To`, with which it would answer to all."""
    return [one.addr_spec for one in message_from_bytes(data, policy=default)["to"].addresses]


@pytest.mark.parametrize("template", ["<input.item> <boss@corp.example>", '"<input.item>" <boss@corp.example>'])
@pytest.mark.parametrize("item", NAMES)
async def test_a_name_adds_no_recipient(template: str, item: str) -> None:
    status, recipients, mails = await _sent(template, item)
    assert recipients in ([], [["boss@corp.example"]])
    assert status == ("succeeded" if recipients else "failed")
    assert all(_headed(mail) == ["boss@corp.example"] for mail in mails)


@pytest.mark.parametrize(
    "to", ["<input.item>", ["<input.item>"], "Boss <<input.item>>", "ok@corp.example, <input.item>"]
)
@pytest.mark.parametrize("item", ADDRESSES)
async def test_an_address_is_one_address(to: Any, item: str) -> None:
    status, recipients, _ = await _sent(to, item)
    assert (status, recipients) == ("failed", [])


@pytest.mark.parametrize("item", ONE)
async def test_an_item_has_one_recipient(item: str) -> None:
    for to in ("<input.item>", ["<input.item>"], "Boss <<input.item>>"):
        _, recipients, mails = await _sent(to, item)
        assert recipients in ([], [[EVIL]])
        assert all(_headed(mail) == [EVIL] for mail in mails)


async def test_what_the_author_and_the_operator_write_may_be_several() -> None:
    document_text = '"Doe, Jane" <jane@corp.example>, <input.item> <a@corp.example>,b@corp.example'
    status, recipients, mails = await _sent(document_text, f"Smith, {EVIL},")
    everyone = ["jane@corp.example", "a@corp.example", "b@corp.example"]
    assert (status, recipients, _headed(mails[0])) == ("succeeded", [everyone], everyone)
    assert (await _sent("${TEAM}", "", {"TEAM": "a@corp.example, b@corp.example"}))[1] == [everyone[1:]]
    assert (await _sent(["Ann <<input.item>>", "b@corp.example"], "a@corp.example"))[1] == [everyone[1:]]


async def test_people_who_are_notified_are_as_many_as_were_written() -> None:
    document = {
        "format": "weft/1",
        "blocks": {
            "start": {"type": "start"},
            "ask": {"type": "approval", "params": {"notify": {"email": "<input.item>"}}},
        },
        "edges": [{"source": "start", "target": "ask"}],
    }
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient())
    engine = await Engine.open(ModelStore(), registry=Registry.load(sandbox=sandbox), services=services)
    try:
        view = await engine.run(document, {"item": f"boss@corp.example, {EVIL}"}, timeout_s=60)
        assert view.status == "failed" and view.error is not None and view.error["code"] == "params_invalid"
    finally:
        await engine.close(grace_s=1)
