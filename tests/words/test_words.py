"""The words of words.txt stand in no text that users meet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import orjson
import pytest

from executor.blocks.types.registry import Registry
from server.api import TABLE
from server.cli import weft
from server.http.openapi import openapi
from tests.words.texts import PACKAGES, ROOT, Text, all_texts, find, python_texts, typescript_texts, words


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield from (key, *_strings(item))
        case list() | tuple():
            for item in value:
                yield from _strings(item)


def _commands(command: click.Command, name: str = "weft") -> Iterator[tuple[str, str]]:
    yield name, command.get_help(click.Context(command, info_name=name))
    if isinstance(command, click.Group):
        for sub, inner in command.commands.items():
            yield from _commands(inner, f"{name} {sub}")


def test_no_text_holds_such_a_word() -> None:
    """Documentation, examples, messages of the product, labels of the editor: `python -m tests.words`."""
    found = find(all_texts())
    assert not found, "\n" + "\n".join(map(str, found))


def test_nor_does_the_help_of_a_command() -> None:
    texts = [Text(Path(__file__), 1, f"{name}: {line}") for name, text in _commands(weft) for line in text.splitlines()]
    assert len(texts) > 200
    assert not find(texts)


def test_nor_does_the_description_of_the_api() -> None:

    described = openapi(TABLE)
    texts = [Text(Path(__file__), 1, text) for text in _strings(described)]
    assert len(texts) > 1000
    assert not find(texts)


def test_nor_does_a_block() -> None:
    registry = Registry.load()
    specs = [registry.get(type) for type in registry.types()]
    texts = [
        Text(Path(__file__), 1, text) for spec in specs for text in _strings(orjson.loads(orjson.dumps(_shown(spec))))
    ]
    assert len(texts) > 200
    assert not find(texts)


def _shown(spec: Any) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in ("title", "description", "sentence", "params", "output")}


@pytest.mark.parametrize("text", ["Nobody answered", "can not be read", "the run goes on", "is told who", "a dead end"])
def test_such_words_are_found(text: str, tmp_path: Path) -> None:
    assert any(pattern.search(text) for pattern, _ in words())
    python = tmp_path / "x.py"
    python.write_text(f'"""{text} (a docstring)."""\nraise ValueError(f"{text}: {{1}}")  # {text}\n')
    typescript = tmp_path / "x.tsx"
    typescript.write_text(f"// {text}\nexport const A = () => <p title='{text}'>{text}</p>\n/* {text} */\n")
    assert [found.text for found in python_texts(python)] == [f"{text}:"]
    assert [re.sub("^'|'$", "", found.text) for found in typescript_texts(typescript)] == [text, text]


# Of comments and names. The longer list is for texts that users meet.
IN_CODE = re.compile(
    r"\b(nobody|somebody|whoever|surely|heirs?|can not|leads? nowhere|goes on|(is|are) told)\b", re.IGNORECASE
)
# Of those of the product and of the editor.
IN_PRODUCT = re.compile(
    r"\b(anybody|(went|going) on|mend(s|ed|ing)?|(was|were|be|been) told(?! apart))\b", re.IGNORECASE
)
# Of the editor alone: a name says what a value is, not that it was given, taken or kept.
IN_EDITOR = re.compile(
    r"\b((is|are|was|were) given|taken over|((const|let|function) (given|taken|kept|told)))\b", re.IGNORECASE
)
GENERATED = {ROOT / "web" / "src" / "api" / name for name in ("schemas.ts", "operations.ts")}
# What golden databases are recorded with, and the tests of the words themselves.
RECORDED_OR_LISTS = ("tests/golden/play.py", "tests/words/")


def _unplain(paths: Iterable[Path], *patterns: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if any(pattern.search(line) for pattern in patterns)
    ]


def test_comments_and_names_are_plain() -> None:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    assert len(paths) > 200
    found = _unplain(paths, IN_CODE, IN_PRODUCT)
    assert not found, "\n" + "\n".join(found)


def test_those_of_the_editor_are_as_well() -> None:
    paths = [
        path
        for folder in ("src", "test", "client/src", "client/test")
        for path in sorted((ROOT / "web" / folder).rglob("*"))
        if path.suffix in (".ts", ".tsx", ".css", ".mjs") and path not in GENERATED
    ]
    assert len(paths) > 200
    found = _unplain(paths, IN_CODE, IN_PRODUCT, IN_EDITOR)
    assert not found, "\n" + "\n".join(found)


def test_those_of_tests_are_as_well() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = _unplain(
        (path for path in paths if not path.relative_to(ROOT).as_posix().startswith(RECORDED_OR_LISTS)), IN_CODE
    )
    assert not found, "\n" + "\n".join(found)
