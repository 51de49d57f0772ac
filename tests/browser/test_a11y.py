"""Six screens, light and dark, looked at by axe-core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor
from tests.browser.test_approval import DOC

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


def findings(page: Page) -> list[str]:
    """What axe calls serious or critical. Its script comes through the debugger: the policy lets no other in."""
    assert AXE.is_file(), "axe-core is not there: run `npm ci` in web/."
    page.evaluate(AXE.read_text("utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)"
    )
    return [
        f"{each['id']}: {', '.join(str(node['target']) for node in each['nodes'][:4])}"
        for each in found
        if each["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_check_30_no_serious_finding_of_axe(editor: Editor, contexts: Contexts, scheme: str) -> None:
    run = editor.api.run(DOC, wait_s=20)
    draft = editor.api.draft(DOC)
    page = contexts(color_scheme=scheme).page()
    screens = {
        "/": page.get_by_role("heading", name="Examples"),
        f"/w/{draft}": page.get_by_test_id("block-ask"),
        f"/runs/{run}": page.get_by_test_id("block-ask"),
        "/runs": page.get_by_test_id(f"run-{run}"),
        "/approvals": page.locator(".waits__card").first,
        "/settings": page.get_by_role("heading").first,
    }
    wrong: list[str] = []
    for path, shown in screens.items():
        page.goto(path)
        expect(shown).to_be_visible()
        wrong += [f"{path} {each}" for each in findings(page)]
        moving = page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length")
        assert moving == 0, f"{path}: something moves although less motion was asked for"
    assert not wrong, "\n".join(wrong)
