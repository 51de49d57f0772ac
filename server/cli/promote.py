"""`weft promote`: a version of a workflow, copied to another server."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from server.cli.common import Refused, call, print_warnings
from server.reach import OFF, SettingsError, read

if TYPE_CHECKING:
    from server.client import AsyncClient

T = TypeVar("T")
DATA = (
    "set",
    "variables",
    "run_workflow",
    "response",
)  # types whose params are values, so that keys there have no meaning
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
@click.option("--dry-run", is_flag=True, help="Only show what differs and what is lacking there.")
@click.pass_obj
def promote(
    url: str, name: str, target: str, version: int | None, token_file: Path | None, activate: bool, dry_run: bool
) -> None:
    """Copy a version of NAME to another server.

    It is the active version there; with --no-activate a draft, which runs nothing before it is deployed. What it
    changes there, what it needs and the other server lacks or has otherwise (secrets, connections, workflows that it
    runs), and schedules and webhooks of this server that are not part of the document, are listed.
    """
    token = _token(token_file)
    here = call(url, lambda client: _here(client, name, version))
    found = here.found
    document = found["document"]

    async def store(client: AsyncClient) -> Any:
        there = await _active(client, found["name"])
        for line in [*await _differs(client, here, there), *await _missing(client, document)]:
            click.echo(line, err=True)
        if dry_run:
            return None
        if activate:  # only what was listed is replaced: 409 would_replace if another version is active by now
            return await client.deploy(document, name, replaces=there["version"] if there is not None else 0)
        return await client.create_draft(document, name)

    saved = call(target, store, token=token)
    if dry_run:
        return
    print_warnings(saved)
    what = f"{name} version {found['version']}"
    if not activate:
        click.echo(f"{what} is draft {saved['id']} at {target}")
        return
    if not saved["created"] and not saved["activated"]:
        click.echo(f"{what} is version {saved['version']} at {target} (unchanged, {saved['hash'][:12]})")
        return
    news = "new" if saved["created"] else "active again"
    click.echo(f"{what} is version {saved['version']} at {target} ({news}, {saved['hash'][:12]})")
    for block_id, block in _blocks(document):
        if block.get("type") in TRIGGERS or str(block.get("type")).startswith("event."):
            click.echo(f"  its {block['type']} {block_id} starts runs there from now on", err=True)


class _Here:
    """The workflow on this server: `children` are the hashes of the workflows that it runs, directly or through
    others."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.children: dict[str, str] = {}
        self.triggers: list[tuple[str, str]] = []


async def _here(client: AsyncClient, name: str, version: int | None) -> _Here:
    here = _Here(await client.workflow(name, version))
    names = _children(here.found["document"])
    while names:
        child = names.pop()
        if child not in here.children and child != name and (one := await _active(client, child)) is not None:
            here.children[child] = one["hash"]
            names += _children(one["document"])
    for kind, listed in (
        ("schedule", (await client.schedules(name))["schedules"]),
        ("webhook", (await _if_allowed(client.webhooks(name)) or {"webhooks": []})["webhooks"]),
    ):
        here.triggers += [(kind, each["id"]) for each in listed if each["origin"] == "api"]
    return here


async def _active(client: AsyncClient, name: str) -> Any:
    """Return the active version, or None if there is no such workflow."""
    from server.client import ApiError

    try:
        return await client.workflow(name)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


async def _if_allowed(asked: Awaitable[T]) -> T | None:
    from server.client import ApiError

    try:
        return await asked
    except ApiError as error:
        if error.status not in (401, 403):
            raise
        return None


async def _differs(client: AsyncClient, here: _Here, there: Any) -> list[str]:
    found = here.found
    lines = []
    if there is not None and there["hash"] != found["hash"]:
        changes = _changes(there["document"], found["document"])
        lines.append(f"  it replaces version {there['version']} there: {'; '.join(changes)}")
    for child, hash in sorted(here.children.items()):
        other = await _if_allowed(_active(client, child))
        if other is not None and other["hash"] != hash:
            lines.append(f"  workflow {child} differs there (version {other['version']}); promote it, too")
    schedules = await _if_allowed(client.schedules(found["name"])) or {"schedules": []}
    webhooks = await _if_allowed(client.webhooks(found["name"])) or {"webhooks": []}
    known = {each["id"] for each in (*schedules["schedules"], *webhooks["webhooks"])}
    lines += [
        f"  {kind} {id} of this server is not part of the document, and is not copied"
        for kind, id in here.triggers
        if id not in known
    ]
    return lines


def _changes(before: Any, after: Any) -> Iterator[str]:
    """Return the differences of two documents, by block, and in their other parts."""
    old, new = dict(_blocks(before)), dict(_blocks(after))
    for what, names in (
        ("new", new.keys() - old.keys()),
        ("removed", old.keys() - new.keys()),
        ("changed", {id for id in old.keys() & new.keys() if old[id] != new[id]}),
    ):
        if names:
            yield f"{what} {', '.join(sorted(names))}"
    if isinstance(before, dict) and isinstance(after, dict):
        rest = sorted(key for key in before.keys() | after.keys() if key != "blocks")
        if other := [key for key in rest if before.get(key) != after.get(key)]:
            yield f"other {', '.join(other)}"


def _children(document: Any) -> list[str]:
    return [name for block in _of_types(document, "run_workflow", "agent") for name in _named(block, "workflow")]


def _token(file: Path | None) -> str | None:
    """Return the token of the other server; never that of this server, which must not be sent elsewhere. Raises
    Refused."""
    try:
        token = read(file) if file is not None else os.environ.get("WEFT_TO_TOKEN")
    except SettingsError as error:
        raise Refused(f"{error}") from None
    return None if token in (None, "", OFF) else token


async def _missing(client: AsyncClient, document: Any) -> list[str]:
    """Return the names in the document that the other server does not have, a line each."""
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
        wanted = set(_children(document))
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
