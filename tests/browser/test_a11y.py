"""Every screen, light and dark: looked at by axe-core, walked through by Tab, and standing still when that is asked
for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts
from tests.browser.editor import Editor, document
from tests.browser.test_approval import DOC

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
TABS_MAX = 120


# Cards and containers that were skipped, rows that were not taken, an error that was handled.
CASES = [{"id": "yes", "title": "Yes", "when": "true"}, {"id": "no", "title": "No"}]
SKIPPED = {"type": "loop", "name": "Skipped", "at": [640, 128], "size": [384, 160], "params": {"count": 2}}
LOOM = "all-runs"
HANDBOOK = "handbook"
PRUNED = document(
    {
        "which": {"type": "condition", "name": "Which", "at": [288, 0], "params": {"cases": CASES}},
        "bad": {"type": "function", "name": "Bad", "at": [640, 0], "params": {"code": "throw new Error('no')"}},
        "caught": {"type": "set", "name": "Caught", "at": [912, 0], "params": {"value": "<which.case>"}},
        "around": SKIPPED,
        "inside": {
            "type": "set",
            "name": "Inside",
            "parent": "around",
            "at": [64, 64],
            "params": {"value": "<which.case>"},
        },
    },
    [
        ("start", "which"),
        ("which", "yes", "bad"),
        ("bad", "error", "caught"),
        ("which", "no", "around"),
        ("around", "body", "inside"),
    ],
)


def screens(editor: Editor, page: Page) -> Iterator[str]:
    """Open one after the other; yields its address when what belongs there is shown."""
    run = editor.api.run(DOC, wait_s=20)
    (wait,) = editor.api.waits(run)
    draft = editor.api.draft(DOC)
    pruned = editor.api.run(PRUNED, wait_s=20)
    editor.api.post("/api/workflows", {"document": {**DOC, "name": LOOM}})
    editor.api.post(f"/api/workflows/{LOOM}/runs?wait=20", {})
    model = "openai:text-embedding-3-small"  # without a key: its document fails
    if not editor.api.get("/api/knowledge")["collections"]:
        editor.api.post("/api/knowledge", {"name": HANDBOOK, "model": model, "description": "How we work"})
    editor.api.put(f"/api/knowledge/{HANDBOOK}/documents", {"name": "tea", "text": "Green tea"})
    shown: dict[str, Locator] = {
        "/": page.locator(".tile").first,
        f"/w/{draft}": page.get_by_test_id("block-ask"),
        f"/w/{draft}?view=json": page.get_by_test_id("json-editor").locator(".cm-content"),
        f"/w/{draft}?view=outline": page.get_by_role("tree").or_(page.get_by_role("treegrid")).first,
        f"/runs/{run}": page.get_by_test_id("block-ask"),
        f"/runs/{pruned}": page.locator("[data-testid=block-inside][data-status=skipped]"),
        "/runs": page.get_by_test_id(f"run-{run}"),
        f"/loom/{LOOM}": page.locator(".loomcard").first,
        "/approvals": page.locator(".waits__card").first,
        "/knowledge": page.get_by_test_id(f"collection-{HANDBOOK}"),
        f"/knowledge/{HANDBOOK}": page.get_by_text("failed"),
        "/usage": page.get_by_text("No model was asked in these days"),
        **{
            f"/settings?page={one}": page.locator(".sets__page").get_by_role("heading", name=name)
            for one, name in (("look", "Theme"), ("webhooks", "Webhooks"), ("connectors", "Connectors"))
        },
        urlsplit(wait["link"]).path: page.get_by_role("button", name="Approve"),
    }
    for path, there in shown.items():
        page.goto(path)
        expect(there).to_be_visible()
        yield path
        if path == f"/w/{draft}":  # a block of it, and the form that starts it, are screens of their own
            page.get_by_test_id("block-ask").click(position={"x": 60, "y": 14})
            expect(page.get_by_test_id("block-name")).to_be_visible()
            yield f"{path}, a block is selected"
            page.get_by_test_id("bar-more").click()
            page.get_by_role("menuitem", name="Run with options").click()
            expect(page.get_by_test_id("run-start")).to_be_visible()
            yield f"{path}, the form of a run"


def findings(page: Page, *rules: str) -> list[str]:
    """Return what axe calls serious or critical, by all rules or these. Its script comes through the debugger: the
    policy lets no other in."""
    assert AXE.is_file(), "axe-core is not there: run `npm ci` in web/."
    page.evaluate(AXE.read_text("utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        """(rules) => axe.run(document, { resultTypes: ['violations'], ...(rules.length ? { runOnly: rules } : {}) })
          .then((found) => found.violations)""",
        rules,
    )
    return [
        f"{each['id']}: {', '.join(str(node['target']) for node in each['nodes'][:4])}"
        for each in found
        if each["impact"] in SERIOUS
    ]


# What has the keyboard, in words, and whether one sees that: an outline, or something that is not there without it, on
# the element, what holds it, or what is in it. "" at the end of the page.
FOCUSED = """() => {
  let it = document.activeElement
  while (it?.shadowRoot?.activeElement) it = it.shadowRoot.activeElement
  if (!it || it === document.body || it === document.documentElement) return ['', true]
  const named = (each) => each.getAttribute('aria-label') ?? each.textContent.trim().slice(0, 30)
  const words = `${it.tagName.toLowerCase()}.${it.getAttribute('class') ?? ''} "${named(it)}"`
  const around = [it, ...it.querySelectorAll('*')].slice(0, 12)
  const above = (each) => each.parentElement ?? each.getRootNode().host
  for (let up = above(it), n = 0; up && n < 5; up = above(up), n++) around.push(up)
  const outlined = (style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1
  if (around.some((each) => outlined(getComputedStyle(each)))) return [words, true]
  const names = ['boxShadow', 'borderTopColor', 'borderBottomColor', 'backgroundColor', 'textDecorationLine', 'stroke']
  const look = () => JSON.stringify(around.map((each) => names.map((name) => getComputedStyle(each)[name])))
  const before = look()
  it.blur()
  const after = look()
  it.focus()
  return [words, before !== after]
}"""


def test_check_30_no_serious_finding_of_axe_and_focus_is_visible_everywhere(page: Page, editor: Editor) -> None:
    wrong: list[str] = []
    for path in screens(editor, page):
        wrong += [f"{path} {each}" for each in findings(page)]
        page.emulate_media(color_scheme="dark")  # there only colors differ
        wrong += [f"{path}, dark: {each}" for each in findings(page, "color-contrast")]
        page.emulate_media(color_scheme="light")
        seen: list[str] = []
        for _ in range(TABS_MAX):
            page.keyboard.press("Tab")
            words, visible = page.evaluate(FOCUSED)
            if not words and seen:
                break
            seen.append(words)
            if not visible:
                wrong.append(f"{path}: one does not see that this has the keyboard: {words}")
        assert len(set(seen)) > 1, f"{path}: Tab goes nowhere"
    assert not wrong, "\n".join(sorted(set(wrong)))


# Notes every animation and transition that takes longer than anyone could miss.
MOVES = """() => {
  window.moved = []
  const note = (event) => {
    for (const each of document.getAnimations()) {
      const { duration, iterations } = each.effect.getComputedTiming()
      if (duration * iterations > 20) {
        const what = each.animationName ?? each.transitionProperty
        window.moved.push(`${event.type}: ${what} of ${each.effect.target.className}`)
      }
    }
  }
  for (const type of ['transitionrun', 'animationstart']) document.addEventListener(type, note, true)
}"""


@pytest.mark.parametrize(("asked", "moves"), [("reduce", False), ("no-preference", True)])
def test_check_30_nothing_moves_when_less_motion_is_asked_for(
    editor: Editor, contexts: Contexts, tmp_path: Path, asked: str, moves: bool
) -> None:
    """The same things are done with and without the wish, so it is known that they would move."""
    go = tmp_path / "go"
    blocks = {
        "talk": {"type": "speak", "at": [288, 0], "params": {"text": "one two", "until": str(go)}},
        "a": {"type": "set", "at": [300, 20], "params": {"value": 1}},
    }
    page = contexts(reduced_motion=asked).page()
    page.add_init_script(f"({MOVES})()")
    mover = Editor(page, editor.api.url)
    mover.open(document(blocks, [("start", "talk"), ("talk", "a")]))
    mover.press("Shift+t")
    mover.until("window.__app.doc.getState().undo.length === 1")
    mover.press("1")
    mover.block("talk").hover()
    mover.press("Control+k")
    expect(page.get_by_role("dialog", name="Commands")).to_be_visible()
    mover.press("Escape")
    run = mover.run()
    mover.has_status("talk", "running")
    expect(mover.at("ticker")).to_contain_text("two")
    running = page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length")
    mover.open_run(run)
    mover.has_status("talk", "running")
    go.touch()
    mover.has_status("a", "succeeded")
    moved = page.evaluate("window.moved")
    assert (running > 0 or bool(moved)) is moves, (running, moved)
