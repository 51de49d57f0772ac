"""The pictures of the README, from a real server and a real run.

python -m tests.browser.screenshots     writes docs/img/editor-light.png and editor-dark.png
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS, WINDOW
from tests.browser.editor import Editor
from tests.browser.get_chromium import find
from tests.support.server import SyncServerProcess

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "parallel-fanout.json"
PLACE = ROOT / "docs" / "img"
SELECTED = "shape"


def main() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    found = find()
    env: dict[str, str | float | bool] = {**os.environ, **found.env}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = SyncServerProcess(Path(folder), {})
        browser = playwright.chromium.launch(executable_path=found.path, headless=True, args=list(FLAGS), env=env)
        try:
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    base_url=server.url,
                    viewport={"width": WINDOW["width"], "height": WINDOW["height"]},
                    color_scheme="dark" if scheme == "dark" else "light",
                    reduced_motion="reduce",
                )
                editor = Editor(context.new_page(), server.url)
                editor.open(json.loads(EXAMPLE.read_text("utf-8")))
                editor.run()
                editor.has_status("join", "succeeded")
                editor.is_saved()
                editor.select(SELECTED)
                editor.press("1")
                editor.at("tab-output").click()
                editor.page.mouse.move(4, 400)
                editor.page.screenshot(path=PLACE / f"editor-{scheme}.png")
                context.close()
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
