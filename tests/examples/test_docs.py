"""The documentation is true where a machine can tell: links lead somewhere, documents compile, lists are complete."""

from __future__ import annotations

import json
import re
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

from compiler.compile import compile_document
from executor.blocks.types.registry import Registry

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples" / "README.md"])


@pytest.fixture(params=PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`((?:compiler|executor|server|examples|tests)/[\w/.-]+)`", page.read_text()):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_the_readme_links_every_page() -> None:
    text = (ROOT / "README.md").read_text()
    pages = [
        page
        for folder in ("tutorial", "howto", "reference", "explanation")
        for page in (ROOT / "docs" / folder).glob("*.md")
    ]
    assert [page.name for page in pages if f"]({page.relative_to(ROOT)})" not in text] == []


def test_the_rooms_of_the_architecture_exist() -> None:
    """Each name in a list below `### `folder`` is a file or folder in it."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Rooms\n")[2].partition("\n## ")[0]
    sections = re.findall(r"^### (.+)\n((?:(?!###).*\n?)*)", text, re.MULTILINE)
    assert len(sections) > 15
    for heading, body in sections:
        folders = [ROOT / name for name in re.findall(r"`([\w/]+)`", heading)]
        assert all(folder.is_dir() for folder in folders), heading
        known = {path.stem for folder in folders for path in (folder, *folder.rglob("*"))}
        for item in re.findall(r"^- .*(?:\n  .*)*", body, re.MULTILINE):
            for name in re.findall(r"`([a-z_/]+)`", item):
                assert name.rpartition("/")[2] in known or (ROOT / name).exists(), f"{heading}: {name}"


def test_documents_in_pages_compile(page: Path) -> None:
    for text in re.findall(r"^```json\n(\{\n.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        document = json.loads(text)
        if document.get("format") == "weft/1":
            assert compile_document(document, Registry.load()).diagnostics == []


def test_the_reference_has_every_block_type() -> None:
    text = (ROOT / "docs/reference/document.md").read_text()
    assert set(re.findall(r"^### (\w+)$", text, re.MULTILINE)) == {
        point.name for point in entry_points(group="weft.blocks")
    }


def test_the_reference_has_every_event_type() -> None:
    from executor.kernel.core.events import Event

    text = (ROOT / "docs/reference/events.md").read_text()
    listed = set(re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", text, re.MULTILINE))
    assert listed == {kind.__struct_config__.tag for kind in Event.__args__}


def test_the_reference_has_every_command_and_option() -> None:
    from server.cli import weft

    text = (ROOT / "docs/reference/cli.md").read_text()
    for name, command in weft.commands.items():
        rows = [line for line in text.splitlines() if line.startswith((f"| `weft {name} ", f"| `weft {name}`"))]
        assert rows, f"weft {name}"
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert any(option in row for row in rows for option in parameter.opts), f"weft {name} {parameter.opts}"


def test_the_reference_has_every_route() -> None:
    from server.api import TABLE

    text = (ROOT / "docs/reference/http-api.md").read_text().replace("{run}", "{id}")
    for spec in TABLE:
        if spec.documented and spec.path not in ("/api/openapi.json", "/demo/echo"):
            assert re.search(rf"{re.escape(spec.path)}\b|{re.escape(spec.path)}[`?]", text), spec.path


def test_the_howto_has_every_setting() -> None:
    from server.variables import KNOWN

    text = (ROOT / "docs/howto/run-in-production.md").read_text()
    for name in set(KNOWN) - {"WEFT_URL", "WEFT_WEB"}:  # for clients; for the installation
        short = name.removeprefix("WEFT_MAIL")
        assert name in text or (name.startswith("WEFT_MAIL_") and f"`{short}`" in text), name
