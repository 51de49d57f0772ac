"""From the export of another program to a run: the list of what is left opens after the import, each task is done in
it, and the channel is chosen from those that the service has.

A server of the test stands in for Slack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor
from tests.support.sim_templates import tell_slack
from tests.support.slack import TOKEN, Slack, slack_beside


@pytest.fixture
def world(servers: Servers, contexts: Contexts, tmp_path: Path) -> Iterator[tuple[Editor, Slack]]:
    """The home page of a server whose connector of Slack is the stand-in's."""
    with slack_beside() as service:
        server = servers(**service.environ(tmp_path / "connectors"))
        watched = contexts(server.url)
        watched.allow("400|502")  # Chromium writes the status of a refusal to the console
        yield Editor(watched.page(), server.url), service


def imported(editor: Editor, document: dict[str, Any]) -> None:
    editor.page.goto("/")
    data = json.dumps(document).encode()
    file: Any = {"name": "notify-slack.json", "mimeType": "application/json", "buffer": data}
    editor.page.locator("input[type=file]").first.set_input_files(file)
    expect(editor.at("setup")).to_be_visible()
    editor.draft_id = editor.page.url.rsplit("/w/", 1)[1].split("?")[0]


def connect(editor: Editor, token: str) -> None:
    editor.at("connect-connection").click()
    editor.at("connect-secret").fill(token)
    editor.at("connect-send").click()
    expect(editor.page.get_by_role("dialog")).to_have_count(0)


def test_an_import_is_set_up_and_runs(world: tuple[Editor, Slack]) -> None:
    editor, service = world
    imported(editor, tell_slack())
    expect(editor.at("setup-count")).to_have_text("0 of 2")
    expect(editor.at("task-connect")).to_contain_text("Connect Slack")
    expect(editor.at("task-choose")).to_contain_text('Choose Channel in "slackNotify"')
    connect(editor, TOKEN)
    expect(editor.at("setup-count")).to_have_text("1 of 2")
    channel = editor.at("setup").get_by_test_id("field-channel")
    expect(channel).to_be_focused()  # the next one
    channel.press("ArrowDown")
    options = editor.page.get_by_role("option")
    expect(options.first).to_contain_text("general")
    channel.press_sequentially("eu")
    expect(options.first).to_contain_text("orders-eu")
    channel.press("Enter")
    expect(channel).to_have_count(0)  # it is done
    expect(editor.at("setup-done")).to_contain_text("All is set up.")
    editor.is_saved()
    assert editor.stored()["blocks"]["c"]["params"]["channel"] == "C003"
    editor.at("setup-run").click()
    expect(editor.at("setup")).to_have_count(0)
    expect(editor.page.get_by_text("Succeeded").first).to_be_visible()
    (message,) = service.sent
    assert (message["channel"], message["text"]) == ("C003", "All is well")
    # The form shows the title of what was chosen, and takes a reference as well.
    editor.select("c")
    field = editor.page.locator("[data-inspector]").get_by_test_id("field-channel")
    expect(field).to_have_value("orders-eu")


def test_what_the_service_refuses_is_said_and_text_is_taken(world: tuple[Editor, Slack]) -> None:
    editor, service = world
    imported(editor, tell_slack())
    editor.at("task-choose").click()
    channel = editor.at("setup").get_by_test_id("field-channel")
    channel.click()
    expect(editor.page.get_by_role("status").filter(has_text="There is no connection")).to_be_visible()
    channel.press("Escape")
    editor.at("task-connect").click()
    connect(editor, TOKEN)
    service.error = "ratelimited"
    channel.click()
    expect(editor.page.get_by_text("Slack refused the request: ratelimited")).to_be_visible()
    channel.press_sequentially("C9")
    editor.page.get_by_role("option").filter(has_text="as it is").click()
    expect(editor.at("setup-done")).to_be_visible()
    editor.is_saved()
    assert editor.stored()["blocks"]["c"]["params"]["channel"] == "C9"


def test_the_list_opens_from_the_problems(world: tuple[Editor, Slack]) -> None:
    editor, _ = world
    imported(editor, tell_slack())
    editor.at("setup").get_by_role("button", name="Close").click()
    expect(editor.at("setup")).to_have_count(0)
    editor.page.get_by_role("tab", name="Problems").click()
    editor.at("open-setup").click()
    expect(editor.at("setup-count")).to_have_text("0 of 2")
