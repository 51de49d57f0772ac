"""A file is chosen in the run dialog, uploaded with progress, and shown among values with a download."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Watched
from tests.browser.editor import Editor, document

INPUT = {
    "type": "object",
    "required": ["report"],
    "properties": {"report": {"type": "object", "format": "file", "title": "Report"}},
}
SHOW = {"show": {"type": "set", "at": [288, 0], "params": {"value": {"report": "<input.report>"}}}}


def test_a_file_is_uploaded_and_downloaded(editor: Editor, tmp_path: Path) -> None:
    content = os.urandom(1_500_000)
    (tmp_path / "report.bin").write_bytes(content)
    editor.open(document(SHOW, [("start", "show")], input=INPUT))
    editor.at("run").click()
    dialog = editor.at("run-dialog")
    expect(dialog.get_by_label("Report")).to_be_visible()
    editor.at("run-start").click()
    expect(dialog).to_contain_text("Choose a file.")
    editor.at("field-report").set_input_files(tmp_path / "report.bin")
    chip = dialog.locator(".filechip")
    expect(chip).to_contain_text("report.bin")
    expect(chip).to_contain_text("1.4 MB")
    before = editor.page.evaluate("window.__app.run.getState().id")
    editor.at("run-start").click()
    editor.until("(old) => window.__app.run.getState().id !== old && window.__app.run.getState().id", arg=before)
    editor.has_status("show", "succeeded")
    editor.select("show")
    editor.at("tab-output").click()
    shown = editor.at("inspector").locator(".filechip")
    expect(shown).to_contain_text("report.bin")
    with editor.page.expect_download() as saved:
        shown.click()
    assert saved.value.suggested_filename == "report.bin"
    assert hashlib.sha256(saved.value.path().read_bytes()).digest() == hashlib.sha256(content).digest()


def test_what_is_refused_is_said_at_the_field(editor: Editor, watched: Watched, tmp_path: Path) -> None:
    watched.allow("413")
    (tmp_path / "large.bin").write_bytes(b"x" * 100)
    editor.page.route(
        "**/api/files?*",
        lambda route: route.fulfill(status=413, json={"status": 413, "detail": "The file is larger than 100 MiB."}),
    )
    editor.open(document(SHOW, [("start", "show")], input=INPUT))
    editor.at("run").click()
    editor.at("field-report").set_input_files(tmp_path / "large.bin")
    alert = editor.at("run-dialog").get_by_role("alert")
    expect(alert).to_contain_text("The file is larger than 100 MiB.")
    expect(editor.at("field-report")).to_be_visible()  # for another file
