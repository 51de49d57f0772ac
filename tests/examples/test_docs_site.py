"""The site of the documentation: every page is in it, every link works, nothing is loaded from elsewhere."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from compiler.diagnostics import CODES
from docs.site.python_names import GROUPS, public
from executor.blocks.types.registry import Registry
from server.api import TABLE
from server.cli import weft as command
from server.variables import KNOWN

pytest.importorskip("zensical", reason="`make docs` needs it")

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.anchors.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        elif tag == "link" and values.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loads.append(str(values["href"]))
        elif values.get("src"):
            self.loads.append(str(values["src"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "build"
    command = [sys.executable, "-m", "docs.site", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_is_in_the_navigation(site: Path) -> None:
    linked = {(site / link).resolve() for link in Page((site / "index.html").read_text()).links}
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").with_suffix(".html")
        assert site / (name.with_name("index.html") if path.name == "README.md" else name) in linked, path


def test_every_link_works(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if "://" in target or link.startswith("mailto:"):
                continue
            found = (path.parent / target).resolve() if target else path
            if found.is_dir():
                found /= "index.html"
            assert found.exists(), f"{path.name} links to {link}"
            if anchor and found in pages:
                assert anchor in pages[found].anchors, f"{path.name} links to {link}"


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert page.loads, path
        assert [each for each in page.loads if "://" in each or each.startswith("//")] == [], path


def test_the_made_pages_are_complete(site: Path) -> None:
    def text(name: str) -> str:
        return (site / "reference" / "made" / f"{name}.html").read_text()

    blocks, codes, routes, commands = (text(name) for name in ("blocks", "codes", "routes", "commands"))
    assert all(f'id="{type}"' in blocks for type in Registry.load().types())
    assert all(f"<code>{code}</code>" in codes for code in CODES)
    assert all(f"{spec.method} {spec.path}" in routes for spec in TABLE if spec.documented)
    assert all(f"weft {name}" in commands for name in command.commands)
    assert all(f"<code>{name}</code>" in text("settings") for name in KNOWN)
    assert all(f'id="{each.anchor}"' in text(group.page) for group in GROUPS for each in public()[group.title])
