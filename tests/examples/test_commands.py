"""What pages show can be copied: commands and their options exist, scripts of models and connectors can be read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from examples.dev_model.script import read_script
from executor.blocks.connectors.validate import read
from server.cli import weft

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples" / "README.md"])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(params=PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def page(request: pytest.FixtureRequest) -> str:
    return str(request.param.read_text())


def commands_in(text: str) -> Iterator[list[str]]:
    """The arguments of each `weft …` in blocks of a shell, and in the text."""
    lines = [line for lang, body in BLOCK.findall(text) if lang in ("", "sh", "bash") for line in _lines(body)]
    lines += re.findall(r"(?<!`)`((?:\.venv/bin/)?weft [a-z][^`|…\[{]*)`(?!`)", BLOCK.sub("", text))
    for line in lines:
        words = shlex.split(line, comments=True)
        for at, word in enumerate(words):
            if word in ("weft", ".venv/bin/weft") and (
                at == 0 or "=" in words[at - 1] or words[at - 1] in ("|", "nohup")
            ):
                rest = words[at + 1 :]
                ends = [i for i, each in enumerate(rest) if each in ("|", "&&", ";", "&", ">", ">>", "<")]
                yield rest[: min(ends, default=len(rest))]


def _lines(body: str) -> list[str]:
    lines = body.replace("\\\n", " ").splitlines()
    return [line for line in lines if re.search(r"\bweft [a-z-]", line) and line.count("'") % 2 == 0]


def refusal_of(arguments: list[str]) -> str | None:
    command: click.Command = weft
    context = click.Context(command, info_name="weft")
    rest = list(arguments)
    try:
        while isinstance(command, click.Group):
            _, rest, _ = command.make_parser(context).parse_args(rest)
            if not rest:
                return None
            found = command.get_command(context, rest[0])
            if found is None:
                return f"there is no command {rest[0]}"
            command, rest = found, rest[1:]
            context = click.Context(command, info_name=command.name, parent=context)
        command.make_parser(context).parse_args(rest)
    except click.NoSuchOption as refused:
        return refused.format_message()
    except click.BadOptionUsage:  # an option that is named without its value
        return None
    return None


def test_commands_exist(page: str) -> None:
    wrong = {" ".join(each): refusal for each in commands_in(page) if (refusal := refusal_of(each))}
    assert wrong == {}


def test_the_search_finds_commands() -> None:
    text = (
        "`weft why RUN`\n```sh\nWEFT_X=1 weft serve --port 1 | tee log   # starts\nprintf x | weft secret set A\n```\n"
    )
    assert list(commands_in(text)) == [["serve", "--port", "1"], ["secret", "set", "A"], ["why", "RUN"]]
    assert refusal_of(["secret", "put"]) == "there is no command put"
    assert refusal_of(["serve", "--prot", "1"]) is not None
    assert refusal_of(["--url", "http://x", "runs", "--json"]) is None


def test_scripts_of_models_can_be_read(page: str) -> None:
    for lang, body in BLOCK.findall(page):
        if lang == "json" and body.startswith('{\n  "rules"'):
            read_script(body.encode())


def test_connectors_can_be_read(page: str) -> None:
    for lang, body in BLOCK.findall(page):
        if lang == "json" and "weft-connector/1" in body:
            assert read(body.encode()).operations
