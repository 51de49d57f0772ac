"""A run that asks a person, and the page behind the link."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, box_of, document

FIELDS = {
    "type": "object",
    "properties": {"note": {"type": "string", "title": "Why"}},
    "required": ["note"],
}
DOC = document(
    {
        "ask": {
            "type": "approval",
            "name": "Manager",
            "at": [288, 0],
            "params": {"title": "Pay it?", "fields": FIELDS, "show": {"amount": 420}, "actions": ["approve", "reject"]},
        },
        "pay": {"type": "set", "at": [576, 0], "params": {"value": "<ask.note>"}},
        "drop": {"type": "set", "at": [576, 160], "params": {"value": "no"}},
    },
    [("start", "ask"), ("ask", "approve", "pay"), ("ask", "reject", "drop")],
)


def test_check_22_approval_on_a_phone_is_followed_live(contexts: Contexts, servers: Servers) -> None:
    url = servers().url  # of its own: nothing else waits there
    editor = Editor(contexts(url).page(), url)
    run = editor.api.run(DOC, wait_s=20)
    (wait,) = editor.api.waits(run)
    editor.open_run(run)
    editor.has_status("ask", "waiting")
    expect(editor.at("run-page")).to_contain_text("Pay it?")
    inbox = contexts(url).page()
    inbox.goto("/approvals")
    expect(inbox.locator(".waits__card")).to_have_attribute("data-status", "pending")
    link = inbox.get_by_role("link", name="Approvals")
    expect(link).to_have_text("Approvals 1 waiting")
    phone = contexts(url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page()
    phone.goto(urlsplit(wait["link"]).path)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    expect(phone.get_by_text("420")).to_be_visible()
    phone.get_by_label("Why").fill("it is due")
    phone.get_by_role("button", name="Approve").tap()
    expect(phone.get_by_role("status")).to_contain_text("was recorded")
    editor.has_status("pay", "succeeded")
    editor.has_status("drop", "skipped")
    expect(link).to_have_text("Approvals")


def test_check_23_looking_changes_nothing_and_the_second_answer_hears_of_the_first(
    editor: Editor, contexts: Contexts
) -> None:
    run = editor.api.run(DOC, wait_s=20)
    (wait,) = editor.api.waits(run)
    link = urlsplit(wait["link"]).path
    one, watched = contexts(java_script_enabled=False).page(), contexts(java_script_enabled=False)
    watched.allow("409")
    other = watched.page()
    for _ in range(5):
        one.goto(link)
        expect(one.get_by_role("button", name="Approve")).to_be_visible()
    assert editor.api.status(run) == "waiting"
    other.goto(link)
    for page, who, choice in ((one, "Ada", "Approve"), (other, "Bob", "Reject")):
        page.get_by_label("Why").fill(f"{who} says so")
        page.get_by_label("Your name").fill(who)
        page.get_by_role("button", name=choice).click()
        expect(page.get_by_role("status")).to_be_visible()
    expect(other.get_by_role("status")).to_contain_text("already answered by Ada")
    expect(other.get_by_text(re.compile("^Recorded"))).to_be_visible()
    editor.api.until(run, "succeeded")
    answers = [event for event in editor.api.events(run) if event["type"] == "wait.closed"]
    assert [event["data"]["outcome"] for event in answers] == ["answered"]
    output = editor.api.get(f"/api/runs/{run}/nodes/ask")["output"]
    assert (output["action"], output["note"]) == ("approve", "Ada says so")


def test_the_editor_asks_as_well(editor: Editor, contexts: Contexts) -> None:
    """On the canvas, in a window of 1024 pixels: the block that waits is visible, and its question answered here."""
    page = contexts(viewport={"width": 1024, "height": 768}).page()
    narrow = Editor(page, editor.api.url)
    narrow.open(DOC)
    # The inspector, which may come later, has the name as well.
    name = page.get_by_role("banner").get_by_test_id("workflow-name")
    expect(name).to_be_visible()
    assert name.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    narrow.run()
    narrow.has_status("ask", "waiting")
    canvas, card = box_of(page.locator(".editor__centre")), box_of(narrow.block("ask"))
    assert canvas["x"] <= card["x"] and card["x"] + card["width"] <= canvas["x"] + canvas["width"]
    asks = page.get_by_role("region", name="Needs attention")
    expect(asks).to_contain_text("Pay it?")
    asks.get_by_role("button", name="Answer").click()
    page.get_by_label("Why").fill("it is due")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    narrow.has_status("pay", "succeeded")
    expect(asks).to_have_count(0)


def test_a_reminder_is_set_in_the_form_and_shown_wherever_one_answers(contexts: Contexts, servers: Servers) -> None:
    url = servers().url
    editor = Editor(contexts(url).page(), url)
    asking = {"title": "Pay it?", "expires_in_s": 604800, "notify": {"email": "ada@example.org"}}
    ask = {"type": "approval", "name": "Manager", "at": [288, 0], "params": asking}
    editor.open(document({"ask": ask}, [("start", "ask")]))
    editor.select("ask")
    before, unit = editor.page.get_by_label("Remind before it expires", exact=True), editor.at("unit-remind_before_s")
    before.fill("8")
    unit.select_option(label="days")
    before.blur()
    wrong = editor.page.get_by_text("It must be shorter than the time after which the question expires.")
    expect(wrong.first).to_be_visible()
    before.fill("1")
    expect(wrong).to_have_count(0)
    changed = editor.doc()
    assert changed["blocks"]["ask"]["params"]["remind_before_s"] == 86_400

    run = editor.api.run(changed, wait_s=20)
    (wait,) = editor.api.waits(run)
    editor.open_run(run)
    editor.page.get_by_role("tab", name="Trace").click()
    expect(editor.at("trace-ask")).to_contain_text("Reminder after 6 d")
    editor.page.get_by_role("tab", name="Events").click()
    expect(editor.page.get_by_text("Manager is waiting for a decision, reminder after 6 d")).to_be_visible()
    letter = contexts(url).page()
    letter.goto(urlsplit(wait["link"]).path)
    expect(letter.locator("footer")).to_contain_text("A reminder is sent")
    expect(letter.locator("footer time")).to_have_count(2)
    inbox = contexts(url).page()
    inbox.goto("/approvals")
    if inbox.locator(".waits__head").get_attribute("aria-expanded") == "false":
        inbox.locator(".waits__head").click()
    expect(inbox.get_by_test_id("reminder")).to_have_text("A reminder is sent in 6 d")
