"""The moving picture of the README: its frames are parts of a page, its file is what browsers read."""

from __future__ import annotations

import base64

from playwright.sync_api import Page

from tests.browser.conftest import Contexts
from tests.browser.film import SIZE, Film

DECODE = """async (file) => {
  const data = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0))
  const decoder = new ImageDecoder({ data, type: 'image/webp' })
  await Promise.all([decoder.tracks.ready, decoder.completed])
  const { frameCount, repetitionCount } = decoder.tracks.selectedTrack
  const { image } = await decoder.decode({ frameIndex: frameCount - 1 })
  const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight)
  const context = canvas.getContext('2d')
  context.drawImage(image, 0, 0)
  const at = (x, y) => [...context.getImageData(x, y, 1, 1).data.slice(0, 3)].map((part) => part > 127)
  return [frameCount, repetitionCount === Infinity, image.displayWidth, image.displayHeight, at(30, 30), at(600, 400)]
}"""


def test_what_changes_is_a_frame_and_the_rest_stays(contexts: Contexts, page: Page) -> None:
    shown = contexts(viewport={**SIZE}).page()
    page.goto("/sign-in")  # a secure context has ImageDecoder, an empty page has not
    shown.goto("/sign-in")
    shown.evaluate("document.body.replaceChildren(); document.body.style.cssText = 'margin: 0; background: white'")
    film = Film(shown, page)
    film.shot(3)  # three times the same: one frame
    shown.evaluate(
        """() => {
          const box = document.body.appendChild(document.createElement('div'))
          box.style.cssText = 'position: fixed; left: 11px; top: 11px; width: 51px; height: 51px; background: black'
        }"""
    )
    film.shot()
    file = film.webp()
    count, forever, width, height, box, rest = page.evaluate(DECODE, base64.b64encode(file).decode())
    assert (count, forever, width, height) == (2, True, SIZE["width"], SIZE["height"])
    assert (box, rest) == ([False] * 3, [True] * 3)
