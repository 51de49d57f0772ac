"""`weft promote`: a version of a workflow, copied to another server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import OK, Refused, call, print_warnings
from server.tokens import OFF, read
from server.variables import SettingsError

if TYPE_CHECKING:
    from server.client import AsyncClient

DATA = ("set", "variables", "run_workflow", "response")  # whose params are values, where a key means nothing
TRIGGERS = ("schedule", "webhook", "form_trigger", "chat_trigger")


@click.command()
@click.argument("name")
@click.option("--to", "target", required=True, metavar="URL", help="The server to copy it to.")
@click.option("--version", type=click.IntRange(1), help="Default: the active one.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The token of the other server. Default: WEFT_TO_TOKEN.",
)
@click.option("--activate/--no-activate", default=True, help="Without it the other server keeps a draft.")
@click.pass_obj
def promote(url: str, name: str, target: str, version: int | None, token_file: Path | None, activate: bool) -> int:
    """Copy a version of NAME to another server.

    It is the active version there; with --no-activate a draft, which runs nothing before it is deployed. What it needs
    and the other server lacks (secrets, connections, workflows) is listed.
    """
    token = _token(token_file)
    found = call(url, lambda client: client.workflow(name, version))
    document = found["document"]

    async def store(client: AsyncClient) -> Any:
        for line in await _lacking(client, document):
            click.echo(line, err=True)
        if activate:
            return await client.deploy(document, name)
        return await client.create_draft(document, name)

    saved = call(target, store, token=token)
    print_warnings(saved)
    what = f"{name} version {found['version']}"
    if not activate:
        click.echo(f"{what} is draft {saved['id']} at {target}")
        return OK
    if not saved["created"] and not saved["activated"]:
        click.echo(f"{what} is version {saved['version']} at {target} (unchanged, {saved['hash'][:12]})")
        return OK
    news = "new" if saved["created"] else "active again"
    click.echo(f"{what} is version {saved['version']} at {target} ({news}, {saved['hash'][:12]})")
    for block_id, block in _blocks(document):
        if block.get("type") in TRIGGERS:
            click.echo(f"  its {block['type']} {block_id} starts runs there from now on", err=True)
    return OK


def _token(file: Path | None) -> str | None:
    """Of the other server: never that of this one, which is not for others. Raises Refused."""
    try:
        token = read(file) if file is not None else os.environ.get("WEFT_TO_TOKEN")
    except SettingsError as error:
        raise Refused(f"{error}") from None
    return None if token in (None, "", OFF) else token


async def _lacking(client: AsyncClient, document: Any) -> list[str]:
    """What the document names and the server does not have, a line each."""
    from server.client import ApiError

    lines: list[str] = []
    names = set(_environment(document))
    try:
        there = {one["name"] for one in (await client.env())["env"] if one["set"]} if names else set()
        lines += [
            f"  {name} is not set at {client.url}; see `weft secret set {name}`" for name in sorted(names - there)
        ]
        wanted = {each for block in _but(document, *DATA) for each in _named(block, "connection")}
        there = {one["name"] for one in (await client.connections())["connections"]} if wanted else set()
        lines += [f"  connection {name} is not there; see `weft connection add`" for name in sorted(wanted - there)]
        wanted = {each for block in _of_types(document, "run_workflow", "agent") for each in _named(block, "workflow")}
        there = {one["name"] for one in (await client.workflows())["workflows"]} if wanted else set()
        lines += [f"  workflow {name} is not there; promote it, too" for name in sorted(wanted - there)]
    except ApiError as error:
        if error.status not in (401, 403):
            raise
        lines.append(f"  what it needs there was not checked: {error.message}")
    return lines


def _blocks(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    blocks = document.get("blocks") if isinstance(document, dict) else None
    yield from blocks.items() if isinstance(blocks, dict) else ()


def _of_types(document: Any, *types: str) -> Iterator[dict[str, Any]]:
    return (block for _, block in _blocks(document) if block.get("type") in types)


def _but(document: Any, *types: str) -> Iterator[dict[str, Any]]:
    return (block for _, block in _blocks(document) if block.get("type") not in types)


def _named(value: Any, key: str) -> Iterator[str]:
    """Texts under this key, at any depth, that are not made of references."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
            text = value.get(key)
            if isinstance(text, str) and text and "<" not in text and "$" not in text:
                yield text
        elif isinstance(value, list):
            stack += value


def _environment(document: Any) -> Iterator[str]:
    """Names that are read as `${NAME}`."""
    from compiler.references import find, texts

    for _, text, _ in texts({key: block.get("params") for key, block in _blocks(document)}, ()):
        yield from (found.text for found in find(text) if found.env and found.text != "WEFT_BASE_URL")


COMMANDS = (promote,)
