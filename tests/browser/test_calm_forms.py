"""Calm forms: red once a field was left, help where the focus is, values beside the names of references."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.browser.editor import Editor, document


def fld(editor: Editor, testid: str) -> Locator:
    return editor.page.locator(".fld", has=editor.at(testid)).last


def test_a_new_block_is_red_only_where_a_field_was_left(editor: Editor) -> None:
    editor.open(document({}, []))
    editor.select("start")
    editor.press("/")
    editor.has_focus("[data-testid=block-picker]")
    editor.page.keyboard.type("email")
    editor.press("Enter")
    to = editor.at("field-to")
    expect(to).to_be_visible()
    editor.is_saved()  # the server has found what is missing
    expect(editor.at("inspector").locator(".finding")).to_have_count(0)
    expect(to).not_to_have_attribute("aria-invalid", "true")
    to.click()
    editor.at("field-subject").click()
    expect(fld(editor, "field-to")).to_contain_text("To is required.")
    expect(fld(editor, "field-subject")).not_to_contain_text("required.")
    to.fill("a@example.com")
    editor.at("field-subject").click()
    assert editor.at("save-state").get_attribute("data-saving") != "saved"  # no answer of the server was waited for
    expect(fld(editor, "field-to")).not_to_contain_text("To is required.")
    editor.press("Escape")
    editor.select("start")
    (mail,) = set(editor.doc()["blocks"]) - {"start"}
    editor.select(mail)
    expect(fld(editor, "field-subject")).to_contain_text("Subject is required.")


def test_help_is_one_place_below_the_field_that_has_the_focus(editor: Editor) -> None:
    mail = {"type": "email", "name": "Mail", "at": [288, 0], "params": {"to": "a@b.example", "subject": "x"}}
    editor.open(document({"m": mail}, [("start", "m")]))
    editor.select("m")
    help_of = fld(editor, "field-to").locator(".fld__about")
    expect(help_of).to_be_hidden()
    subject = editor.at("field-subject")
    before = subject.bounding_box()
    editor.at("field-to").click()
    expect(help_of).to_be_visible()
    expect(help_of).to_contain_text("One address")
    assert subject.bounding_box() == before
    expect(fld(editor, "field-subject").locator(".fld__about")).to_be_hidden()


def test_a_reference_shows_its_value_and_moves_nothing_when_it_is_entered(editor: Editor) -> None:
    loop = {"type": "loop", "name": "Each", "at": [288, 0], "params": {"mode": "each", "items": '["a","b"]'}}
    inner = {"type": "set", "name": "It", "at": [40, 60], "parent": "l", "params": {"value": "It <loop.item>"}}
    editor.open(document({"l": loop, "s": inner}, [("start", "l"), ("l", "body", "s")]))
    editor.run()
    editor.has_status("l", "succeeded")
    editor.select("s")
    editor.at("tab-config").click()
    field = fld(editor, "field-value")
    chip = field.locator(".chip-value")
    expect(chip).to_be_visible()
    expect(chip).to_have_text('item"b"')
    box = field.bounding_box()
    editor.at("field-value").click()
    expect(chip).to_be_hidden()
    expect(editor.at("field-value")).to_have_value("It <loop.item>")
    expect(field.get_by_test_id("preview")).to_contain_text("It b")
    assert field.bounding_box() == box


def test_every_kind_of_field_waits_until_it_is_left(editor: Editor) -> None:
    """In a block that was there before: what a person types, adds or chooses is red after that, not meanwhile."""
    blocks = {
        "when": {
            "type": "condition",
            "name": "When",
            "at": [288, 0],
            "params": {"cases": [{"id": "a", "when": "true"}, {"id": "else"}]},
        },
        "vars": {
            "type": "variables",
            "name": "Vars",
            "at": [576, 0],
            "params": {"assign": [{"name": "n", "value": 1}]},
        },
        "give": {"type": "set", "name": "Give", "at": [576, 160], "params": {"value": 1}},
        "call": {"type": "http", "name": "Call", "at": [864, 0], "params": {"url": "http://x.example"}},
    }
    editor.open(
        document(
            blocks,
            [("start", "when"), ("when", "a", "vars"), ("when", "else", "vars"), ("vars", "give"), ("give", "call")],
            variables={"n": 0, "m": 0},
        )
    )
    form = editor.at("inspector")
    red = form.locator("[aria-invalid=true], .finding, .ref__wrong, .chip-ref--wrong")

    def is_calm(field: Locator, text: str, message: str) -> None:
        """Nothing is red while the text is typed, whatever the server finds; it is once the field is left."""
        before = field.input_value()
        field.click()
        field.fill(text)
        editor.is_saved()
        assert red.count() == 0, red.evaluate_all("all => all.map(e => e.outerHTML)")
        editor.at("workflow-name").first.focus()
        expect(form).to_contain_text(message)
        field.fill(before)
        editor.at("workflow-name").first.focus()
        editor.is_saved()

    editor.select("vars")
    editor.at("add-assign").click()
    expect(editor.at("field-assign.1.name")).to_be_focused()
    editor.is_saved()
    assert red.count() == 0, red.evaluate_all("all => all.map(e => e.outerHTML)")
    editor.at("workflow-name").first.focus()
    expect(form.get_by_role("group", name="Assignment to assignment 2")).to_contain_text("required")
    editor.at("field-assign.1.name").fill("m")
    editor.is_saved()
    editor.select("when")
    is_calm(editor.at("field-cases.0.id"), "out", "reserved")
    editor.select("give")
    form.get_by_role("button", name="JSON", exact=True).click()
    is_calm(editor.at("field-value"), '{"a":', "Invalid JSON")
    editor.select("call")
    is_calm(editor.at("field-url"), "http://x.example/<strt.n>", "Did you mean")
