"""A moving picture (WebP) of the editor: drawing, running, killing the server, answering, rewinding. Made by
`python -m tests.browser.screenshots`.

Chromium encodes each frame, and of a frame only the part that changed. The container around the frames is written here:
https://developers.google.com/speed/webp/docs/riff_container
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.editor import PAGE_S, Editor
from tests.support.server import SyncServerProcess

SIZE = ViewportSize(width=1120, height=700)
FRAME_MS = 120
LAST_MS = 2500
ENCODE = """async ([png, quality]) => {
  const image = await createImageBitmap(new Blob([Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))]))
  const draw = (w, h) => {
    const canvas = new OffscreenCanvas(w, h)
    return [canvas, canvas.getContext('2d', { alpha: false, willReadFrequently: true })]
  }
  const [, whole] = draw(image.width, image.height)
  whole.drawImage(image, 0, 0)
  const now = new Uint32Array(whole.getImageData(0, 0, image.width, image.height).data.buffer)
  const before = globalThis.before
  let [left, top, right, bottom] = [image.width, image.height, -1, -1]
  for (let y = 0, at = 0; y < image.height; y++)
    for (let x = 0; x < image.width; x++, at++)
      if (!before || before[at] !== now[at]) {
        if (x < left) left = x
        if (x > right) right = x
        if (y < top) top = y
        bottom = y
      }
  globalThis.before = now
  if (right < 0) return null
  left -= left % 2
  top -= top % 2
  const [w, h] = [right + 1 - left, bottom + 1 - top]
  const [part, context] = draw(w, h)
  context.drawImage(image, -left, -top)
  const blob = await part.convertToBlob({ type: 'image/webp', quality })
  const bytes = new Uint8Array(await blob.arrayBuffer())
  let text = ''
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return [left, top, w, h, btoa(text)]
}"""


class Frame(NamedTuple):
    """A part of the picture that changed, and how long it is shown. `image`: chunks of WebP."""

    x: int
    y: int
    w: int
    h: int
    ms: int
    image: bytes


class Film:
    """Frames of a page, encoded by another one."""

    def __init__(self, page: Page, encoder: Page, quality: float = 0.7) -> None:
        self.page, self._encoder, self._quality = page, encoder, quality
        self._frames: list[Frame] = []

    def shot(self, count: int = 1) -> None:
        for _ in range(count):
            png = base64.b64encode(self.page.screenshot()).decode()
            found = self._encoder.evaluate(ENCODE, [png, self._quality])
            if found is None:
                self._hold(FRAME_MS)
                continue
            x, y, w, h, image = found
            self._frames.append(Frame(x, y, w, h, FRAME_MS, _picture(base64.b64decode(image))))

    def _hold(self, ms: int) -> None:
        self._frames[-1] = self._frames[-1]._replace(ms=self._frames[-1].ms + ms)

    def hold(self, ms: int) -> None:
        """Take the picture, and show it so long."""
        self.shot()
        self._hold(ms)

    def webp(self) -> bytes:
        self._hold(LAST_MS)
        return animation(SIZE["width"], SIZE["height"], self._frames)


def animation(width: int, height: int, frames: list[Frame]) -> bytes:
    """The file: it repeats for ever, and each frame stays where the next one does not cover it."""
    body = _chunk(b"VP8X", bytes([2, 0, 0, 0]) + _u24(width - 1) + _u24(height - 1))
    body += _chunk(b"ANIM", bytes(4) + bytes(2))
    for frame in frames:
        where = _u24(frame.x // 2) + _u24(frame.y // 2) + _u24(frame.w - 1) + _u24(frame.h - 1) + _u24(frame.ms)
        body += _chunk(b"ANMF", where + bytes([2]) + frame.image)
    return b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


def _picture(file: bytes) -> bytes:
    """The chunks of a WebP file that a frame may have: the pixels and their transparency."""
    at, kept = 12, b""
    while at < len(file):
        size = int.from_bytes(file[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        if file[at : at + 4] in (b"VP8 ", b"VP8L", b"ALPH"):
            kept += file[at:end]
        at = end
    return kept


def _u24(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2)


def record(browser: Browser) -> bytes:
    """Play the scenes on a server of their own. Returns the file."""
    expect.set_options(timeout=PAGE_S * 1000)
    with tempfile.TemporaryDirectory() as folder:
        settings = {"WEFT_LEASE_MS": "1000"}
        server = SyncServerProcess(Path(folder), settings)
        context = browser.new_context(base_url=server.url, viewport=SIZE, color_scheme="light")
        aside = browser.new_context()
        try:
            film = Film(context.new_page(), aside.new_page())
            editor = Editor(film.page, server.url)
            _draw(film, editor)
            _run(film, editor)
            server.kill()
            film.shot(14)
            port = str(urlsplit(server.url).port)
            server = SyncServerProcess(Path(folder), {**settings, "WEFT_PORT": port})
            expect(editor.at("connection")).to_have_attribute("data-mode", "live")
            film.shot(6)
            _answer(film, editor)
            _rewind(film, editor)
            return film.webp()
        finally:
            context.close()
            aside.close()
            server.stop()


def _draw(film: Film, editor: Editor) -> None:
    page = film.page
    page.goto("/")
    new = page.get_by_role("banner").get_by_role("button", name="New workflow")
    new.wait_for()
    page.wait_for_timeout(1000)
    film.hold(900)
    new.click()
    editor.is_ready("start")
    film.shot(3)
    editor.select("start")
    for typed in ("http", "appr", "set"):
        editor.press("/")
        film.shot(2)
        for letter in typed:
            page.keyboard.type(letter)
            film.shot()
        editor.press("Enter")
        film.shot(4)
    page.get_by_role("textbox", name="Value").first.fill("<approval.action>")
    film.shot(2)
    page.locator(".editor__centre").click(position={"x": 300, "y": 60})
    editor.press("1")  # all of it in view
    film.shot(3)
    editor.select("http-request")
    page.get_by_role("textbox", name="URL").first.fill("${WEFT_BASE_URL}/demo/echo")
    film.shot(2)
    editor.select("approval")
    page.get_by_role("textbox", name="Title").first.fill("Send it to the customer?")
    film.hold(700)


def _run(film: Film, editor: Editor) -> None:
    editor.is_saved()
    editor.at("run").click()
    film.shot(10)
    editor.has_status("approval", "waiting")
    film.hold(900)


def _answer(film: Film, editor: Editor) -> None:
    asks = film.page.get_by_role("region", name="Needs attention")
    asks.get_by_role("button", name="Answer").click()
    film.shot(6)
    film.page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    film.shot(6)
    editor.has_status("set", "succeeded")
    film.hold(700)


def _rewind(film: Film, editor: Editor) -> None:
    """Take the playhead back to the beginning, slowly, and to the end again."""
    box = editor.at("tape").bounding_box()
    assert box is not None
    mouse, y = film.page.mouse, box["y"] + box["height"] / 2
    right, left = box["x"] + box["width"] - 4, box["x"] + box["width"] * 0.15
    mouse.move(right, y)
    mouse.down()
    for part in range(21):
        mouse.move(right + (left - right) * part / 20, y)
        film.shot()
    mouse.up()
    film.hold(900)
    editor.press("End")
    film.shot(2)
