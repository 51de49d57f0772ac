"""What a person does in the editor and in a run, as methods; and what the server knows, beside what the page shows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.support import documents

ENDED = ("succeeded", "failed", "cancelled")
ASK_S = 60
PAGE_S = 60
# The canvas fits itself to what it shows in the frame after that, and again a moment after its own size has changed.
FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 70)))"""

# The corner of a card that is pressed, inside the canvas.
IN_SIGHT = """(card, [x, y]) => {
  const canvas = card.closest(".react-flow").getBoundingClientRect()
  const { left, top } = card.getBoundingClientRect()
  return left >= canvas.left && left + x < canvas.right && top >= canvas.top && top + y < canvas.bottom
}"""
PRESSED = (60, 14)


def document(blocks: dict[str, Any], edges: Sequence[tuple[str, ...]], **more: Any) -> dict[str, Any]:
    """Edges as `(source, target)` or `(source, handle, target)`. The start block has a place on the canvas."""
    start = {"start": {"type": "start", "name": "Start", "at": [0, 0]}}
    return {**documents.document("tested", *map(" ".join, edges), blocks={**start, **blocks}), **more}


class Api:
    """The server, asked directly."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str, **params: Any) -> Any:
        return httpx.get(self.url + path, params=params, timeout=ASK_S).raise_for_status().json()

    def post(self, path: str, body: Any = None) -> Any:
        return httpx.post(self.url + path, json={} if body is None else body, timeout=ASK_S).raise_for_status().json()

    def put(self, path: str, body: Any) -> Any:
        return httpx.put(self.url + path, json=body, timeout=ASK_S).raise_for_status().json()

    def draft(self, doc: dict[str, Any]) -> str:
        return str(self.post("/api/drafts", {"document": doc, "name": doc["name"]})["id"])

    def run(self, doc: dict[str, Any], input: Any = None, wait_s: int = 0) -> str:
        """Start it; with `wait_s` come back when it has ended or waits."""
        path = f"/api/runs?wait={wait_s}" if wait_s else "/api/runs"
        run = str(self.post(path, {"document": doc, **({} if input is None else {"input": input})})["run"])
        if wait_s:
            self.until(run, "waiting", *ENDED)
        return run

    def status(self, run: str) -> str:
        return str(self.get(f"/api/runs/{run}")["status"])

    def until(self, run: str, *statuses: str) -> str:
        """Ask until the run is in one of these. It is another process: there is nothing to wait on but asking."""
        end = time.monotonic() + ASK_S
        while (now := self.status(run)) not in statuses:
            assert time.monotonic() < end, f"the run is {now}, not {' or '.join(statuses)}"
            time.sleep(0.05)
        return now

    def events(self, run: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/api/runs/{run}/events", headers={"accept": "application/json"}, timeout=ASK_S)
        return list(answer.raise_for_status().json()["events"])

    def waits(self, run: str) -> list[dict[str, Any]]:
        return list(self.get("/api/waits", run=run)["waits"])


class Editor:
    """A page of the interface. Blocks are named by id."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.api = Api(url)
        self.draft_id = ""

    # where it is

    def open(self, doc: dict[str, Any], query: str = "") -> str:
        """A draft of the document, opened. Its id."""
        self.draft_id = self.api.draft(doc)
        self.page.goto(f"/w/{self.draft_id}{query}")
        self.is_ready(*doc["blocks"])
        return self.draft_id

    def open_run(self, run: str, query: str = "") -> None:
        self.page.goto(f"/runs/{run}{query}")
        expect(self.page.get_by_test_id("run-page")).to_be_visible()

    def is_ready(self, *blocks: str) -> None:
        expect(self.at("canvas")).to_be_visible()
        for block in blocks:
            expect(self.block(block)).to_be_attached()

    # what is there

    def at(self, testid: str) -> Locator:
        return self.page.get_by_test_id(testid)

    def block(self, block: str) -> Locator:
        return self.at(f"block-{block}")

    def edge(self, source: str, target: str, handle: str = "out") -> Locator:
        return self.at(f"edge-{source}:{handle}>{target}")

    def doc(self) -> dict[str, Any]:
        """The document as the page has it."""
        found: dict[str, Any] = self.page.evaluate("window.__app.doc.getState().doc")
        return found

    def selected(self) -> list[str]:
        found: list[str] = self.page.evaluate("window.__app.ui.getState().selection.blocks")
        return found

    def stored(self) -> dict[str, Any]:
        """The document as the server has it."""
        found: dict[str, Any] = self.api.get(f"/api/drafts/{self.draft_id}")["document"]
        return found

    def run_id(self) -> str:
        found: str = self.page.evaluate("window.__app.run.getState().id")
        return found

    # what is done

    def select(self, block: str) -> None:
        card, (x, y) = self.block(block), PRESSED
        expect(card).to_be_visible()
        # To another one Playwright scrolls the canvas, and React Flow scrolls it back between press and release.
        assert card.evaluate(IN_SIGHT, PRESSED), f"{block} is not in sight"
        card.click(position={"x": x, "y": y})
        expect(self.block(block)).to_have_attribute("data-selected", "true")

    def show_blocks(self, group: str = "Actions") -> None:
        """Open the palette at one of its groups."""
        self.page.locator(".palette--rail").get_by_role("button", name=group).click()

    def choose(self, entry: str) -> None:
        """Choose an entry of the menu of the bar."""
        self.at("bar-more").click()
        self.page.get_by_role("menuitem", name=entry).click()

    def press(self, keys: str) -> None:
        self.page.keyboard.press(keys)

    def drag(self, start: Locator, end: Locator | tuple[float, float], drop: bool = True) -> None:
        """From the middle of one thing to the middle of another, or to a point of the window."""
        from_x, from_y = middle(start)
        to_x, to_y = end if isinstance(end, tuple) else middle(end)
        self.page.mouse.move(from_x, from_y)
        self.page.mouse.down()
        self.page.mouse.move(to_x, to_y, steps=8)
        if drop:
            self.page.mouse.up()

    def pull(self, block: str, to: tuple[float, float]) -> None:
        """Take a block by its head and let it go with its head there."""
        box = box_of(self.block(block))
        self.page.mouse.move(box["x"] + 60, box["y"] + 14)
        self.page.mouse.down()
        self.page.mouse.move(*to, steps=10)
        self.page.mouse.up()

    def until(self, script: str, arg: Any = None) -> None:
        """Wait until a script says yes. Playwright's own waiting would need `eval`, which the policy forbids."""
        end = time.monotonic() + PAGE_S
        while not self.page.evaluate(script, arg):
            assert time.monotonic() < end, f"this did not come true: {script}"
            self.page.wait_for_timeout(30)

    def has_focus(self, place: str) -> None:
        """Wait until the keys go to something inside `place`, a CSS selector."""
        self.until("(place) => document.activeElement?.closest(place) != null", arg=place)

    def is_saved(self) -> None:
        expect(self.at("save-state")).to_have_attribute("data-saving", "saved")

    def run(self) -> str:
        """Through the dialog, with what it offers; a workflow without input has none. The run's id."""
        before = self.page.evaluate("window.__app.run.getState().id")
        self.at("run").click()
        self.until(
            "(old) => window.__app.ui.getState().overlay === 'run' || window.__app.run.getState().id !== old",
            arg=before,
        )
        if self.page.evaluate("window.__app.ui.getState().overlay === 'run'"):
            self.at("run-start").click()
        self.until("(old) => window.__app.run.getState().id !== old && window.__app.run.getState().id", arg=before)
        return self.run_id()

    def has_status(self, block: str, status: str) -> None:
        expect(self.block(block)).to_have_attribute("data-status", status)


def box_of(thing: Locator) -> dict[str, float]:
    """Where it is once it stands still."""
    thing.wait_for(state="attached")
    end = time.monotonic() + PAGE_S
    box = None
    while (now := thing.bounding_box()) != box or box is None:
        assert time.monotonic() < end, "it is not on the page, or never stands still"
        box = now
        thing.page.evaluate(FRAMES)
    return {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}


def middle(thing: Locator) -> tuple[float, float]:
    box = box_of(thing)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
