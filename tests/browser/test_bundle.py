"""How much a browser has to fetch: the built interface against its budget, in bytes after gzip."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from server import ui

KB = 1_000
IMPORTED = re.compile(r"""(?:from|import)\s*["']\./([^"']+\.js)["']""")
HASH = re.compile(rb"(?<=-)[\w-]{8}(?=\.(?:js|css)\b)")  # in names: it differs with each change, by 50 bytes in all
LOADED = re.compile(r"""(?:src|href)="/assets/([^"]+\.js)\"""")


@pytest.fixture
def assets(built: None) -> Path:
    return ui.BUILT / "assets"


def sizes(assets: Path, *entries: str) -> dict[str, int]:
    """What these scripts need before they can start: themselves and all that is imported, not what is loaded later."""
    found: dict[str, int] = {}
    left = list(entries)
    while left:
        name = left.pop()
        if name not in found:
            packed = assets / f"{name}{ui.PACKED}"
            script = gzip.decompress(packed.read_bytes()) if packed.exists() else (assets / name).read_bytes()
            found[name] = len(gzip.compress(HASH.sub(b"12345678", script), 9))
            left += IMPORTED.findall(script.decode())
    return found


def one(assets: Path, pattern: str) -> str:
    (found,) = assets.glob(f"{pattern}*")
    return found.name.removesuffix(ui.PACKED)


def test_opening_a_draft(assets: Path) -> None:
    """React and React Flow are two thirds of it. What is not on the screen at first comes later: `lazy`."""
    page = LOADED.findall((ui.BUILT / "index.html").read_text("utf-8"))
    needed = sizes(assets, *page, one(assets, "Editor-*.js"))
    assert sum(needed.values()) <= 229.9 * KB, needed


def test_the_text_editor_comes_later_and_is_lean(assets: Path) -> None:
    name = one(assets, "codemirror-*.js")
    page = LOADED.findall((ui.BUILT / "index.html").read_text("utf-8"))
    shared = sizes(assets, *page, one(assets, "Editor-*.js"))
    assert name not in shared
    assert sum(size for each, size in sizes(assets, name).items() if each not in shared) <= 133 * KB


def test_the_resume_page(assets: Path) -> None:
    assert sum(sizes(assets, one(assets, "resume-*.js")).values()) <= 5 * KB


def test_fonts_for_latin(assets: Path) -> None:
    """Other alphabets are fetched by who needs them: each is a file with a range of its own."""
    latin = [each.stat().st_size for each in assets.glob("*-latin-wght-normal-*.woff2")]
    assert len(latin) == 2 and sum(latin) <= 75 * KB
