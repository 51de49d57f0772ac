"""Issue 9, section 3: the panels, the run dialog and the pages, as a first user met them."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Watched
from tests.browser.editor import Editor, document


def block(type: str, x: int, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, 0], "params": params}


SET = document({"a": block("set", 288, value="one"), "b": block("set", 576, value="two")}, [("start", "a"), ("a", "b")])


def problems(page: Page) -> None:
    page.get_by_role("tab", name=re.compile("^Problems")).click()


class TestJsonFields:
    DOC = document(
        {
            "ask": {**block("set", 288, value={"x": 1}), "name": "Ask"},
            "call": {**block("http", 576, method="POST", url="https://x.example"), "name": "Call"},
        },
        [("start", "ask"), ("ask", "call")],
    )

    def test_b01_a_reference_outside_quotes_gets_quotes(self, editor: Editor) -> None:
        editor.open(self.DOC)
        editor.select("call")
        editor.page.get_by_role("group", name="Type of Body").get_by_role("button", name="JSON").click()
        body = editor.at("field-body")
        body.click()
        editor.page.keyboard.type('{"amount": <Ask.x')
        expect(editor.page.locator(".refmenu [role=option]").first).to_be_visible()
        editor.press("Enter")
        editor.page.keyboard.type("}")
        expect(body).to_have_value('{"amount": "<Ask.x>"}')
        assert editor.doc()["blocks"]["call"]["params"]["body"] == {"amount": "<Ask.x>"}

    def test_b01_invalid_text_stays_with_the_block(self, editor: Editor) -> None:
        editor.open(self.DOC)
        editor.select("call")
        editor.page.get_by_role("group", name="Type of Body").get_by_role("button", name="JSON").click()
        editor.at("field-body").fill('{"amount": ')
        editor.select("ask")
        editor.select("call")
        expect(editor.at("field-body")).to_have_value('{"amount": ')
        expect(editor.block("call").locator(".card__mark[data-severity=error]")).to_be_visible()
        editor.page.reload()
        editor.is_ready("call")
        problems(editor.page)
        expect(editor.page.locator(".problem", has_text="invalid JSON")).to_have_count(1)
        editor.select("call")
        body = editor.at("field-body")
        expect(body).to_have_value('{"amount": ')
        body.fill('{"amount": 5}')
        expect(editor.block("call").locator(".card__mark[data-severity=error]")).to_have_count(0)
        assert editor.doc()["blocks"]["call"]["params"]["body"] == {"amount": 5}


def test_b02_problems_wait_for_the_server(editor: Editor) -> None:
    editor.open(SET)
    problems(editor.page)
    expect(editor.page.get_by_text("No problems")).to_be_visible()
    editor.page.route("**/api/drafts/*", lambda route: None if route.request.method == "PUT" else route.continue_())
    editor.select("a")
    editor.at("field-value").fill("three")
    expect(editor.page.get_by_text("Checking the workflow")).to_be_visible()
    expect(editor.page.get_by_text("No problems")).to_have_count(0)


def test_b05_the_last_run_stays_painted(editor: Editor) -> None:
    editor.open(SET)
    run = editor.run()
    editor.has_status("b", "succeeded")
    editor.page.reload()
    editor.has_status("b", "succeeded")
    assert editor.run_id() == run
    editor.page.get_by_role("link", name="Approvals").click()
    expect(editor.page.get_by_role("heading", name="Approvals")).to_be_visible()
    editor.page.go_back()
    editor.has_status("b", "succeeded")


def test_b07_a_new_case_stands_above_else_with_the_keyboard_in_it(editor: Editor) -> None:
    cases = [{"id": "yes", "title": "Yes", "when": "true"}, {"id": "else", "title": "Else"}]
    editor.open(document({"c": block("condition", 288, cases=cases)}, [("start", "c")]))
    editor.select("c")
    editor.at("add-cases").click()
    expect(editor.at("field-cases.1.when.0.left")).to_be_focused()
    editor.page.keyboard.type("1")
    editor.at("field-cases.1.when.0.operator").select_option(label="is greater than")
    editor.at("field-cases.1.when.0.right").fill("2")
    now = editor.doc()["blocks"]["c"]["params"]["cases"]
    assert [each["title"] for each in now] == ["Yes", "Case 2", "Else"]
    assert now[1]["when"] == "1 > 2"
    editor.is_saved()
    problems(editor.page)
    expect(editor.page.locator(".problem", has_text="never")).to_have_count(0)


def test_b09_a_loop_has_the_fields_of_its_mode_only(editor: Editor) -> None:
    loop = {**block("loop", 288, mode="for", count=3), "size": [320, 200]}
    editor.open(document({"loop": loop}, [("start", "loop")]))
    editor.select("loop")
    mode = editor.at("field-mode")
    expect(mode.locator("option", has_text="For each item")).to_have_count(1)
    expect(editor.at("field-count")).to_be_visible()
    mode.select_option(label="For each item")
    expect(editor.at("field-items")).to_be_visible()
    expect(editor.at("field-count")).to_have_count(0)
    assert editor.doc()["blocks"]["loop"]["params"] == {"mode": "each"}
    editor.page.get_by_role("button", name="More", exact=True).click()
    editor.page.get_by_role("menuitem", name="Undo").click()
    assert editor.doc()["blocks"]["loop"]["params"] == {"mode": "for", "count": 3}


def test_b12_run_again_begins_with_the_container(editor: Editor) -> None:
    work = {**block("set", 40, value="one"), "name": "Work", "parent": "loop"}
    blocks = {"loop": {**block("loop", 288, mode="for", count=2), "name": "Loop", "size": [400, 240]}, "work": work}
    run = editor.api.run(document(blocks, [("start", "loop"), ("loop", "body", "work")]), wait_s=20)
    editor.open_run(run)
    editor.select("work")
    expect(editor.at("retry-node")).to_have_count(0)
    again = editor.at("rerun")
    expect(again).to_contain_text("Run again from Loop")
    again.click()
    dialog = editor.page.get_by_role("dialog", name="Run again")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    expect(dialog.get_by_label("From Loop")).to_be_checked()
    dialog.get_by_role("button", name="Run", exact=True).click()
    editor.until("(old) => location.pathname.startsWith('/runs/') && !location.pathname.endsWith(old)", arg=run)


def test_b15_replacing_with_nothing_has_to_be_chosen(editor: Editor) -> None:
    editor.open(SET)
    editor.press("Control+f")
    editor.page.get_by_label("Find", exact=True).fill("one")
    button = editor.at("replace-all")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.dispatch_event("click")
    assert editor.doc()["blocks"]["a"]["params"]["value"] == "one"
    editor.page.get_by_label("Delete matches").check()
    expect(button).to_contain_text("Delete 1")
    button.click()
    assert editor.doc()["blocks"]["a"]["params"]["value"] == ""


def test_b16_a_new_row_has_the_keyboard(editor: Editor) -> None:
    editor.open(SET)
    editor.select("start")
    editor.at("add-fields").click()
    expect(editor.at("field-fields.0.name")).to_be_focused()
    editor.page.keyboard.type("amount")
    editor.press("Enter")
    assert editor.doc()["blocks"]["start"]["params"]["fields"][0]["name"] == "amount"
    editor.page.evaluate("window.__app.ui.setState({ selection: { blocks: [], edges: [], notes: [] } })")
    editor.at("add-variables").click()
    expect(editor.at("field-variables.0.name")).to_be_focused()
    editor.page.keyboard.type("total")
    editor.press("Enter")
    assert list(editor.doc()["variables"]) == ["total"]


def test_b20_json_that_is_no_workflow_is_refused(editor: Editor, watched: Watched) -> None:
    editor.page.goto("/")
    file = {"name": "hello.json", "mimeType": "application/json", "buffer": b'{"hello": 1}'}
    watched.allow("status of 4")
    editor.page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    expect(editor.page.get_by_role("alert").first).to_be_visible()
    assert "/w/" not in editor.page.url


def test_f08_publish_and_the_keys_have_buttons(editor: Editor) -> None:
    editor.open({**SET, "name": "published-by-button"})
    editor.at("publish").click()
    dialog = editor.page.get_by_role("dialog", name="Publish published-by-button")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_visible()
    dialog.get_by_role("button", name="Publish").click()
    expect(editor.at("versions")).to_contain_text("v1")
    editor.at("bar-more").click()
    for name in ("Undo", "Redo", "Zoom in", "Zoom out", "Keyboard shortcuts"):
        expect(editor.page.get_by_role("menuitem", name=name)).to_be_visible()


def test_f09_a_workflow_without_input_runs_at_once(editor: Editor) -> None:
    editor.open(SET)
    editor.at("run").click()
    editor.has_status("b", "succeeded")
    expect(editor.at("run-dialog")).to_have_count(0)


def test_f10_mail_that_goes_to_the_log_says_so(editor: Editor) -> None:
    mail = block("email", 288, to="ada@example.org", subject="Hi", body="Text")
    editor.open_run(editor.api.run(document({"mail": mail}, [("start", "mail")]), wait_s=20))
    editor.select("mail")
    expect(editor.at("mail-logged")).to_contain_text("Not sent")


def test_f11_a_length_of_time_can_be_read(editor: Editor) -> None:
    editor.open(document({"ask": block("approval", 288, title="Go?", expires_in_s=604800)}, [("start", "ask")]))
    editor.select("ask")
    expect(editor.at("field-expires_in_s")).to_have_value("7")
    expect(editor.at("unit-expires_in_s").locator("option:checked")).to_have_text("days")


def test_d10_labels_of_a_menu_stand_below_each_other(editor: Editor) -> None:
    editor.open(SET)
    editor.block("a").click(button="right", position={"x": 60, "y": 14})
    items = editor.page.locator(".menu__item")
    expect(items.first).to_be_visible()
    first = "(item) => item.firstElementChild?.matches('.icon, .menu__blank')"
    assert all(items.nth(i).evaluate(first) for i in range(items.count()))


def test_d16_no_row_of_a_tree_is_selected_at_first(editor: Editor) -> None:
    editor.open_run(editor.api.run(SET, input={"x": 1}, wait_s=20))
    editor.select("start")
    tree = editor.at("inspector").get_by_role("tree").first
    expect(tree).to_be_visible()
    expect(tree.locator("[aria-selected=true]")).to_have_count(0)
    tree.focus()
    expect(tree.locator("[aria-selected=true]")).to_have_count(1)


@pytest.mark.parametrize("width", [390])
def test_d18_a_run_on_a_phone_names_its_workflow(editor: Editor, contexts: Contexts, width: int) -> None:
    run = editor.api.run({**SET, "name": "named-run"}, wait_s=20)
    ask = {"type": "approval", "params": {"title": "Send it?"}}
    for _ in range(10):  # their number is in the bar
        editor.api.run(document({"ask": ask}, [("start", "ask")]))
    phone = contexts(viewport={"width": width, "height": 844}, has_touch=True).page()
    phone.goto(f"/runs/{run}")
    title = phone.get_by_role("heading", name="Run of named-run")
    expect(title).to_be_visible()
    expect(phone.get_by_role("link", name=re.compile(r"Approvals \d\d+ waiting"))).to_be_attached()
    assert title.evaluate("(it) => it.clientWidth > 200 && getComputedStyle(it).clipPath === 'none'")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_ended_run_continues_with_the_draft_and_lists_first_what_it_repeats(editor: Editor) -> None:
    def made(value: str) -> dict[str, Any]:
        blocks = {
            "a": {**block("set", 288, value="one"), "name": "First"},
            "b": {**block("set", 576, value=value), "name": "Second"},
        }
        return document(blocks, [("start", "a"), ("a", "b")])

    draft = editor.api.post("/api/drafts", {"document": made("<a> and two"), "name": "tested"})
    run = editor.api.post(f"/api/drafts/{draft['id']}/run?wait=20", {})["run"]
    put = {"document": made("<a> and three")}
    url = f"{editor.api.url}/api/drafts/{draft['id']}"
    httpx.put(url, json=put, headers={"if-match": '"1"'}, timeout=30).raise_for_status()
    editor.open_run(run)
    editor.select("a")
    editor.at("rerun").click()
    dialog = editor.page.get_by_role("dialog", name="Run again")
    dialog.get_by_label("Continue with the draft").check()
    fates = dialog.get_by_test_id("fates")
    expect(fates.locator("div", has_text="Runs again")).to_contain_text("Second")
    expect(fates.locator("div", has_text="Kept")).to_contain_text("First")
    dialog.get_by_role("button", name="Continue").click()
    editor.until("(old) => location.pathname.startsWith('/runs/') && !location.pathname.endsWith(old)", arg=run)
    new = editor.page.url.rpartition("/")[2].partition("?")[0]
    assert editor.api.until(new, "succeeded") == "succeeded"
    ended = {e["key"]: e for e in editor.api.events(new) if e["type"] == "node.succeeded"}
    assert (ended["a"]["data"].get("from_run"), ended["b"]["data"].get("from_run")) == (run, None)
