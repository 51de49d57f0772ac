"""Names, references, the JSON view, and what is saved."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Watched
from tests.browser.editor import Editor, document


def block(type: str, x: int, y: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, y], **more}


def test_check_10_typing_a_reference(editor: Editor) -> None:
    blocks = {
        "known": block("set", 288, 0, name="Known", params={"value": {"city": "Lima"}}),
        "mail": block("email", 576, 0, params={"to": "a@example.com", "subject": "About", "body": "x"}),
        "later": block("set", 864, 0, name="Later", params={"value": 1}),
        "aside": block("set", 288, 160, name="Aside", params={"value": 1}),
    }
    editor.open(document(blocks, [("start", "known"), ("known", "mail"), ("mail", "later"), ("start", "aside")]))
    editor.run()
    editor.has_status("later", "succeeded")
    editor.select("mail")
    editor.at("tab-config").click()
    field = editor.at("field-subject")
    field.click()
    editor.press("End")
    editor.page.keyboard.type(" <")
    options = editor.page.locator(".refmenu [role=option]")
    expect(options.first).to_be_visible()
    offered = " ".join(options.all_inner_texts()).lower()
    assert "known" in offered and "later" not in offered and "aside" not in offered and "mail" not in offered
    editor.page.keyboard.type("known.ci")
    expect(options.first).to_contain_text("city")
    editor.press("Enter")
    expect(options).to_have_count(0)
    expect(field).to_have_value("About <known.city>")
    expect(editor.at("preview").first).to_contain_text("About Lima")


def test_check_11_renaming_takes_the_references_along(editor: Editor) -> None:
    blocks = {
        "a": block("set", 288, 0, name="First", params={"value": {"x": 1}}),
        "b": block("set", 576, 0, params={"value": "see <First.x>"}),
        "c": block("function", 864, 0, params={"code": "return <First.x> + 1"}),
    }
    editor.open(document(blocks, [("start", "a"), ("a", "b"), ("b", "c")]))
    before = editor.doc()
    editor.select("a")
    name = editor.at("block-name")
    name.fill("Renamed")
    name.press("Enter")
    expect(editor.block("a")).to_contain_text("Renamed")
    params = {each: editor.doc()["blocks"][each]["params"] for each in ("b", "c")}
    assert "irst" not in json.dumps(params)
    assert [text.lower() for text in (params["b"]["value"], params["c"]["code"])] == [
        "see <renamed.x>",
        "return <renamed.x> + 1",
    ]
    assert editor.page.evaluate("window.__app.doc.getState().undo.length") == 1
    editor.at("canvas").click(position={"x": 8, "y": 8})
    editor.press("Control+z")
    assert editor.doc() == before


def test_check_13_json_both_ways(editor: Editor, watched: Watched) -> None:
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    editor.open(document({"a": block("set", 288, 0, name="Before")}, [("start", "a")]), "?view=json")
    text = editor.at("json-editor").locator(".cm-content")
    expect(text).to_be_visible()

    def write(content: str) -> None:
        text.click()
        editor.press("Control+a")
        editor.page.evaluate("(text) => navigator.clipboard.writeText(text)", content)
        editor.press("Control+v")

    doc = editor.doc()
    doc["blocks"]["a"]["name"] = "After"
    write(json.dumps(doc))
    expect(editor.block("a")).to_contain_text("After")
    editor.is_saved()
    good = editor.doc()
    assert editor.stored() == good
    write(json.dumps(doc)[:-10])
    expect(editor.at("json-banner")).to_be_visible()
    expect(editor.block("a")).to_contain_text("After")
    assert editor.doc() == good
    expect(editor.at("save-state")).to_have_attribute("data-saving", "saved")
    assert editor.stored() == good


def test_check_15_edits_survive_a_killed_tab(editor: Editor, watched: Watched) -> None:
    draft = editor.open(document({"a": block("set", 288, 0, name="A")}, [("start", "a")]))
    editor.is_saved()
    editor.select("a")
    editor.at("block-name").fill("Kept")
    editor.at("block-name").press("Enter")
    expect(editor.block("a")).to_contain_text("Kept")
    editor.is_saved()
    assert editor.stored()["blocks"]["a"]["name"] == "Kept"
    watched.allow(r"ERR_FAILED|Failed to fetch")
    watched.context.route(
        f"**/api/drafts/{draft}", lambda route: route.abort() if route.request.method == "PUT" else route.continue_()
    )
    editor.at("block-name").fill("Unsaved")
    editor.at("block-name").press("Enter")
    expect(editor.at("save-state")).to_have_attribute("data-saving", "offline")
    editor.page.close(run_before_unload=False)
    watched.context.unroute_all()
    again = Editor(watched.page(), editor.api.url)
    again.draft_id = draft
    again.page.goto(f"/w/{draft}")
    again.at("restore-bar").get_by_role("button", name="Restore").click()
    expect(again.block("a")).to_contain_text("Unsaved")
    again.is_saved()
    assert again.stored()["blocks"]["a"]["name"] == "Unsaved"


def test_check_16_the_second_save_is_asked(editor: Editor, contexts: Contexts) -> None:
    draft = editor.open(document({"a": block("set", 288, 0, name="A"), "b": block("set", 576, 0, name="B")}, []))
    watched = contexts()
    watched.allow("409")
    other = Editor(watched.page(), editor.api.url)
    other.draft_id = draft
    other.page.goto(f"/w/{draft}")
    other.is_ready("a")
    for each, which, name in ((editor, "a", "Mine"), (other, "b", "Theirs")):
        each.select(which)
        each.at("block-name").fill(name)
        each.at("block-name").press("Enter")
        if each is editor:
            each.is_saved()
    dialog = other.at("conflict")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Mine")
    expect(dialog).to_contain_text("Theirs")
    other.page.get_by_role("button", name="Save mine as a copy").click()
    expect(dialog).to_have_count(0)
    names = [each["name"] for each in other.stored()["blocks"].values()]
    assert "Mine" in names
    drafts = other.api.get("/api/drafts")["drafts"]
    copies = (other.api.get(f"/api/drafts/{each['id']}")["document"]["blocks"] for each in drafts)
    assert any(each.get("b", {}).get("name") == "Theirs" for each in copies)


def test_versions_are_compared_from_the_list_of_commands(editor: Editor) -> None:
    """What compares them is fetched then."""
    doc = {**document({"a": block("set", 288, 0, params={"value": 1})}, [("start", "a")]), "name": "compared"}
    editor.api.post("/api/workflows", {"document": doc})
    editor.open(doc)
    editor.press("Control+k")
    editor.page.keyboard.type("Compare versions")
    editor.press("Enter")
    expect(editor.page.get_by_role("dialog", name="Compare versions")).to_be_visible()
