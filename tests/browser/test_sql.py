"""The form of an `sql` block: its query is code without references, and a finding stands where it belongs."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.editor import Editor, document

QUERY = (
    "SELECT product, sum(amount) AS total\nFROM sales -- all of them\nWHERE day >= :since AND kind = 'tea'\nGROUP BY 1"
)


def test_a_query_is_written_in_its_own_language(editor: Editor) -> None:
    block = {"type": "sql", "name": "Totals", "at": [300, 0], "params": {"database": "shop.db", "query": "SELECT 1"}}
    editor.open(document({"totals": block}, [("start", "totals")]))
    editor.block("totals").click()
    text = editor.at("field-query").locator(".cm-content")
    expect(text).to_have_text("SELECT 1")
    text.press("ControlOrMeta+a")  # and not `fill`: it types before the editor has seen what it selected
    editor.page.keyboard.insert_text(QUERY)
    expect(editor.page.get_by_text("The query uses :since, which is not a parameter.").first).to_be_visible()
    keyword = text.locator("span").filter(has_text="GROUP")
    comment = text.locator("span").filter(has_text="-- all of them")
    colour = "e => getComputedStyle(e).color"
    expect(comment).to_have_count(1)
    assert len({keyword.evaluate(colour), comment.evaluate(colour), text.evaluate(colour)}) == 3
    text.press("ControlOrMeta+a")
    editor.page.keyboard.insert_text("SELECT <start.id>")
    editor.at("field-database").focus()  # what is new is shown once the field was left
    expect(editor.page.get_by_text("The query contains the reference <start.id>.").first).to_be_visible()
    assert editor.doc()["blocks"]["totals"]["params"]["query"] == "SELECT <start.id>"
