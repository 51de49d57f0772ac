"""The email block against a real mail server."""

import logging
from email import message_from_bytes
from email.policy import default
from typing import Any, cast

import pytest

from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.services import MailSettings, Services
from executor.blocks.types.email import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from tests.support.endpoints import smtp
from tests.unit.executor.blocks.types.flow import context


def _services(port: int | None = None, **env: str) -> Services:
    mail = (
        MailSettings() if port is None else MailSettings("smtp", "weft@example.org", "127.0.0.1", port, start_tls=False)
    )
    return Services(sandbox=cast(Any, None), http=cast(Any, None), mail=mail, env=env)


async def _send(services: Services, key: str = "run:mail", **params: Any) -> dict[str, Any]:
    given = {"to": "ada@example.org", "subject": "Hi", "body": "Text"} | params
    done = await block.run(context(given, services=services, idempotency_key=key, now_ms=1_700_000_000_000))
    assert isinstance(done, Done)
    return cast(dict[str, Any], done.output)


async def _error(services: Services, **params: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await _send(services, **params)
    return caught.value


async def test_a_mail_is_sent() -> None:
    async with smtp() as server:
        output = await _send(
            _services(server.port),
            to='"Lovelace, Ada" <ada@example.org>, bob@example.org',
            cc=["carol@example.org"],
            subject="Größe ✓",
            body="Line one\n.starts with a dot\nüber",
        )
    (mail,) = server.mails
    assert (mail.sender, mail.recipients) == (
        "weft@example.org",
        ["ada@example.org", "bob@example.org", "carol@example.org"],
    )
    message = message_from_bytes(mail.data, policy=default)
    assert message["subject"] == "Größe ✓"
    assert message["to"] == '"Lovelace, Ada" <ada@example.org>, bob@example.org'
    assert message["cc"] == "carol@example.org"
    assert message["from"] == "weft@example.org"
    assert message["date"] == "Tue, 14 Nov 2023 22:13:20 -0000"
    assert message["message-id"] == output["message_id"]
    assert output["message_id"].endswith("@example.org>")
    assert message.get_content().replace("\r\n", "\n") == "Line one\n.starts with a dot\nüber\n"
    assert output == {
        "message_id": output["message_id"],
        "transport": "smtp",
        "to": ["ada@example.org", "bob@example.org", "carol@example.org"],
        "refused": [],
    }


async def test_a_repeated_attempt_sends_the_same_message_id() -> None:
    async with smtp() as server:
        services = _services(server.port)
        first, again = await _send(services), await _send(services)
        other = await _send(services, key="run:mail@loop#1")
    assert first["message_id"] == again["message_id"] != other["message_id"]
    assert len(server.mails) == 3


async def test_without_a_server_the_mail_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="executor.blocks.types.email"):
        output = await _send(
            _services(None, TOKEN="s3cret-token"), body={"link": "http://x/resume/1", "t": "s3cret-token"}
        )
    assert output["transport"] == "log"
    assert "To: ada@example.org" in caplog.text
    assert "http://x/resume/1" in caplog.text
    assert "s3cret-token" not in caplog.text


async def test_a_body_that_is_no_text_is_json_and_none_is_empty() -> None:
    async with smtp() as server:
        services = _services(server.port)
        await _send(services, body={"a": [1, None]})
        await _send(services, body=None)
    bodies = [message_from_bytes(mail.data, policy=default).get_content().strip() for mail in server.mails]
    assert bodies == ['{"a":[1,null]}', ""]


@pytest.mark.parametrize(
    "params",
    [
        {"subject": "Hi\r\nBcc: evil@example.org"},
        {"subject": "Hi\nX: y"},
        {"to": "ada@example.org\r\nBcc: evil@example.org"},
        {"to": ["ada@example.org\nBcc: evil@example.org"]},
        {"cc": "x@example.org\r\n\r\nbody"},
        {"from": "a@example.org\r\nX: y"},
        {"from": "a@example.org, b@example.org"},
        {"to": None},
        {"to": ""},
        {"to": []},
        {"to": "unknown"},
        {"to": "=?utf-8?b?!!!?=@example.org"},
        {"to": "<=?x?q?=e9?=@a\xe9;).@example.org"},
        {"to": "a b@example.org"},
        {"to": "@example.org"},
        {"to": [1]},
        {"to": {"a": 1}},
        {"subject": {"a": 1}},
        {"to": [f"a{n}@example.org" for n in range(101)]},
    ],
)
async def test_no_value_can_add_a_head_or_a_recipient(params: dict[str, Any]) -> None:
    async with smtp() as server:
        error = await _error(_services(server.port), **params)
    assert (error.code, error.retryable, server.mails) == ("params_invalid", False, [])


@pytest.mark.parametrize(
    ("replies", "retryable"),
    [
        ({"RCPT TO": "550 unknown"}, False),
        ({"RCPT TO": "451 later"}, True),
        ({"MAIL FROM": "530 not you"}, False),
        ({"DATA": "452 full"}, True),
        ({"DATA": "554 spam"}, False),
        ({"hello": "554 go away"}, False),
        ({"hello": "421 busy"}, True),
    ],
)
async def test_what_the_server_refuses_for_good_is_not_tried_again(replies: dict[str, str], retryable: bool) -> None:
    async with smtp(replies) as server:
        error = await _error(_services(server.port))
    assert (error.code, error.retryable) == ("mail_failed", retryable)


async def test_recipients_that_are_refused_among_others_are_named() -> None:
    async with smtp({"RCPT TO:<bob": "550 unknown"}) as server:
        output = await _send(_services(server.port), to=["ada@example.org", "bob@example.org"])
    assert output["refused"] == ["bob@example.org"]
    assert server.mails[0].recipients == ["ada@example.org"]


async def test_no_server_is_worth_another_try() -> None:
    async with smtp() as server:
        port = server.port
    error = await _error(_services(port))
    assert (error.code, error.retryable) == ("mail_failed", True)


async def test_a_secret_is_neither_logged_nor_sent_through_another_server(caplog: pytest.LogCaptureFixture) -> None:
    for services in (_services(), _services(1)):
        with bound_to({"KEY": Rules(["mail.example.com"])}):
            error = await _error(services, to="a@b.example", subject="Key", body="canary-4711")
        assert error.code == "secret_host_refused" and not error.retryable
    assert "canary-4711" not in caplog.text
