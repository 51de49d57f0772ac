"""Which messages a wait gets that opens: those of its block, then those of the server, for waits that people answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from executor.kernel.handler.needs import NotifySettings
from executor.kernel.run.alerts import SERVER_WIDE, notifications_of
from executor.kernel.values.seal import unseal
from tests.support.rows import wait

SERVER = NotifySettings(email=("ops@example.com",), webhook="https://example.com/waits")


@pytest.mark.parametrize(
    ("kind", "channels"),
    [
        ("approval", ["request", "email", "webhook"]),
        ("form", ["request", "email", "webhook"]),
        ("attention", ["request", "email", "webhook"]),
        ("timer", ["request"]),
        ("webhook", ["request"]),
    ],
)
def test_the_addresses_of_the_server_are_for_questions_to_people(kind: str, channels: list[str]) -> None:
    row = replace(wait("r"), kind=kind)
    made = notifications_of(row, [("request", b"sealed")], SERVER)
    assert [one.channel for one in made] == channels
    assert [one.n for one in made] == list(range(1, len(channels) + 1))
    assert {one.content for one in made[1:]} <= {SERVER_WIDE}
    assert {(one.run_id, one.wait_id, one.due_at_ms) for one in made} == {("r", row.id, row.opened_at_ms)}


def test_a_server_without_addresses_adds_none() -> None:
    assert notifications_of(replace(wait("r"), kind="form"), [], NotifySettings()) == []


def test_what_is_sealed_names_no_address() -> None:
    assert unseal(SERVER_WIDE, {}) == {"server": True}


def test_a_reminder_is_every_message_once_more_and_later_than_the_opening() -> None:
    row = replace(wait("r"), kind="form")
    for remind_ms, at_ms in ((row.opened_at_ms + 60_000, row.opened_at_ms + 60_000), (0, row.opened_at_ms + 1)):
        made = notifications_of(row, [("email", b"sealed")], SERVER, remind_ms)
        assert [one.n for one in made] == list(range(1, 7))
        assert [(one.channel, one.content) for one in made[3:]] == [(one.channel, one.content) for one in made[:3]]
        assert {(one.created_at_ms, one.due_at_ms) for one in made[3:]} == {(at_ms, at_ms)}
