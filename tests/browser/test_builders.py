"""Conditions, lengths of time and schedules are chosen, and the document has the same text as before."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.editor import Editor, document


def block(type: str, x: int, **params: Any) -> dict[str, Any]:
    return {"type": type, "at": [x, 0], "params": params}


def params(editor: Editor, block: str) -> Any:
    return editor.doc()["blocks"][block]["params"]


def condition(when: str) -> dict[str, Any]:
    fields = [{"name": "amount", "type": "number"}, {"name": "name", "type": "string"}]
    cases = [{"id": "yes", "title": "Yes", "when": when}, {"id": "else", "title": "Else"}]
    return document(
        {
            "start": {"type": "start", "name": "Start", "at": [0, 0], "params": {"fields": fields}},
            "check": {**block("condition", 288, cases=cases), "name": "Check"},
        },
        [("start", "check")],
    )


class TestConditions:
    def when(self, editor: Editor) -> Any:
        return editor.doc()["blocks"]["check"]["params"]["cases"][0]["when"]

    def test_f04_a_condition_is_built_with_the_keyboard(self, editor: Editor) -> None:
        editor.open(condition("true"))
        editor.select("check")
        expect(editor.page.get_by_text("Always true until you choose a value.")).to_be_visible()
        editor.at("field-cases.0.when.0.left").focus()
        keys = editor.page.keyboard
        keys.type("<Start.am")
        expect(editor.page.locator(".refmenu [role=option]").first).to_be_visible()
        editor.press("Enter")
        assert self.when(editor) == '<Start.amount> == ""'
        editor.press("Tab")
        editor.press("Tab")
        operator = editor.page.get_by_label("Operator of Expression of Yes")
        expect(operator).to_be_focused()
        operator.select_option(label="is greater than")
        editor.press("Tab")
        keys.type("500")
        assert self.when(editor) == "<Start.amount> > 500"
        editor.press("Tab")
        editor.press("Enter")  # Add rule
        second = editor.page.get_by_label("Value of Expression of Yes, rule 2", exact=True)
        expect(second).to_be_focused()
        assert self.when(editor) == "<Start.amount> > 500"
        keys.type("<Start.na")
        editor.press("Enter")
        editor.at("field-cases.0.when.1.operator").select_option(label="contains")
        editor.at("field-cases.0.when.1.right").fill("Ada L")
        editor.at("match-cases.0.when").select_option("any")
        assert self.when(editor) == '<Start.amount> > 500 || (<Start.name> ?? "").includes("Ada L")'
        editor.is_saved()

    def test_f04_the_text_of_the_builder_runs(self, editor: Editor) -> None:
        editor.open(condition('(<Start.name> ?? "").includes("Ada L") && <Start.amount> > 500'))
        for amount, name, case in ((900, "Ada Lovelace", "yes"), (900, "Bob", "else"), (1, "Ada L", "else")):
            run = editor.api.run(editor.doc(), {"amount": amount, "name": name}, wait_s=20)
            assert editor.api.get(f"/api/runs/{run}/nodes/check")["output"]["case"] == case

    def test_f04_text_that_is_more_than_rules_stays_text(self, editor: Editor) -> None:
        editor.open(condition("<Start.amount> > 500 && <Start.name> || <Start.amount> < 3"))
        editor.select("check")
        text = editor.page.get_by_label("Expression of Yes", exact=True)
        expect(text).to_have_value("<Start.amount> > 500 && <Start.name> || <Start.amount> < 3")
        expect(editor.page.get_by_text("can only be edited as text")).to_be_visible()
        text.fill("<Start.amount> !== 'x'")
        editor.at("rows-cases.0.when").click()
        expect(editor.at("field-cases.0.when.0.right")).to_have_value("x")
        assert self.when(editor) == "<Start.amount> !== 'x'"
        editor.at("text-cases.0.when").click()
        expect(text).to_be_focused()

    def test_f04_undo_and_readonly(self, editor: Editor) -> None:
        editor.open(condition("<Start.amount> > 500"))
        editor.select("check")
        right = editor.at("field-cases.0.when.0.right")
        right.fill("600")
        assert self.when(editor) == "<Start.amount> > 600"
        editor.page.get_by_role("button", name="More", exact=True).click()
        editor.page.get_by_role("menuitem", name="Undo").click()
        expect(right).to_have_value("500")
        run = editor.api.run(editor.doc(), {"amount": 3, "name": "x"}, wait_s=20)
        editor.open_run(run)
        editor.select("check")
        editor.at("tab-config").click()
        expect(right).to_have_value("500")
        expect(right).not_to_be_editable()
        expect(editor.at("add-cases.0.when")).to_have_count(0)

    def test_f04_a_loop_and_skip_if_have_it(self, editor: Editor) -> None:
        loop = {**block("loop", 288, mode="while", condition="<loop.index> < 3"), "size": [320, 200]}
        editor.open(document({"loop": loop}, [("start", "loop")]))
        editor.select("loop")
        expect(editor.at("field-condition.0.left")).to_have_value("<loop.index>")
        editor.at("field-condition.0.right").fill("5")
        assert editor.doc()["blocks"]["loop"]["params"]["condition"] == "<loop.index> < 5"
        editor.at("policy").get_by_text("Error handling").click()
        expect(editor.at("field-policy.skip_if.0.left")).to_have_count(0)
        editor.at("add-policy.skip_if").click()
        expect(editor.at("field-policy.skip_if.0.left")).to_be_focused()
        editor.page.keyboard.type("<Start")
        expect(editor.page.locator(".refmenu [role=option]").first).to_be_visible()
        editor.press("Enter")
        editor.at("field-policy.skip_if.0.operator").select_option(label="is empty")
        assert editor.doc()["blocks"]["loop"]["policy"] == {"skip_if": '(<Start> ?? "").length === 0'}
        editor.page.get_by_role("button", name="Remove rule").click()
        assert "policy" not in editor.doc()["blocks"]["loop"]


class TestLengths:
    def test_f11_a_number_and_its_unit(self, editor: Editor) -> None:
        editor.open(document({"ask": block("approval", 288, title="Go?", expires_in_s=604800)}, [("start", "ask")]))
        editor.select("ask")
        expires, unit = editor.page.get_by_label("Expires after", exact=True), editor.at("unit-expires_in_s")
        expect(expires).to_have_value("7")
        expect(unit).to_have_value("d")
        expires.fill("2")
        unit.select_option(label="hours")
        assert params(editor, "ask")["expires_in_s"] == 7200
        expires.fill("1.5")
        assert params(editor, "ask")["expires_in_s"] == 5400
        expires.fill("<Start.seconds>")
        assert params(editor, "ask")["expires_in_s"] == "<Start.seconds>"
        expect(unit).to_be_disabled()
        expires.fill("")
        assert "expires_in_s" not in params(editor, "ask")

    def test_f11_retries_and_waits(self, editor: Editor) -> None:
        editor.open(document({"w": block("wait", 288, seconds=90)}, [("start", "w")]))
        editor.select("w")
        expect(editor.page.get_by_label("Wait for", exact=True)).to_have_value("90")
        editor.at("unit-seconds").select_option(label="minutes")
        assert editor.doc()["blocks"]["w"]["params"]["seconds"] == 5400
        editor.at("policy").get_by_text("Error handling").click()
        editor.at("unit-policy.timeout_s").select_option(label="minutes")
        editor.at("field-policy.timeout_s").fill("3")
        assert editor.doc()["blocks"]["w"]["policy"] == {"timeout_s": 180}


def schedule(cron: str) -> dict[str, Any]:
    started = {"type": "schedule", "name": "Every", "at": [0, 200], "params": {"cron": cron, "tz": "UTC"}}
    return document({"every": started, "a": block("set", 288, value=1)}, [("start", "a"), ("every", "a")])


class TestSchedules:
    def test_f11_a_schedule_is_chosen(self, editor: Editor) -> None:
        editor.open(schedule("0 9 * * MON-FRI"))
        editor.select("every")
        kind = editor.page.get_by_label("Repeat", exact=True)
        expect(kind).to_have_value("weekdays")
        editor.at("field-cron-time").fill("07:30")
        assert params(editor, "every")["cron"] == "30 7 * * MON-FRI"
        kind.select_option(label="Weekly")
        editor.page.get_by_role("button", name="Tuesday").click()
        editor.page.get_by_role("button", name="Sunday").click()
        assert params(editor, "every")["cron"] == "30 7 * * MON,WED,THU,FRI,SUN"
        kind.select_option(label="Monthly")
        editor.page.get_by_label("on the").select_option(label="last day")
        assert params(editor, "every")["cron"] == "30 7 L * *"
        expect(editor.page.get_by_text(re.compile("At 07:30 on the last day of the month"))).to_be_visible()
        kind.select_option(label="Every few minutes")
        editor.at("field-cron-every").select_option("20")
        assert params(editor, "every")["cron"] == "*/20 * * * *"
        kind.select_option(label="Hourly")
        editor.at("field-cron-minute").fill("15")
        assert params(editor, "every")["cron"] == "15 * * * *"
        expect(editor.page.get_by_role("list", name="Next runs").get_by_role("listitem").first).to_contain_text(":15")
        kind.select_option(label="Custom (cron expression)")
        editor.at("field-cron").fill("0 9,17 1 JAN *")
        assert params(editor, "every")["cron"] == "0 9,17 1 JAN *"

    @pytest.mark.parametrize("expression", ["@daily", "*/7 * * * *", "0 9 * * MON#2"])
    def test_f11_what_is_not_offered_is_text(self, editor: Editor, expression: str) -> None:
        editor.open(schedule(expression))
        editor.select("every")
        expect(editor.page.get_by_label("Repeat", exact=True)).to_have_value("custom")
        expect(editor.at("field-cron")).to_have_value(expression)
        assert editor.doc()["blocks"]["every"]["params"]["cron"] == expression
