"""`weft knowledge`: collections of documents that workflows search."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from server.cli.common import FAILED, OK, call, counted, show, with_json

if TYPE_CHECKING:
    from server.client import AsyncClient
    from server.client.answers import DocumentList, DocumentView

WAIT_S = 0.5
Mode = Literal["hybrid", "vector", "text"]


@click.group()
def knowledge() -> None:
    """Knowledge: collections of documents that workflows search."""


@knowledge.command()
@click.argument("name")
@click.option("--model", required=True, help="Of embeddings, such as openai:text-embedding-3-small. It stays.")
@click.option("--description", default="", help="What is in it.")
@click.option("--chunk-chars", type=int, help="Characters of a chunk. Default: 1600.")
@click.option("--overlap-chars", type=int, help="Those that it has in common with the one before. Default: 200.")
@click.pass_obj
def create(
    url: str, name: str, model: str, description: str, chunk_chars: int | None, overlap_chars: int | None
) -> None:
    """Make the collection NAME."""
    sizes = {"chunk_chars": chunk_chars, "overlap_chars": overlap_chars}
    call(url, lambda client: client.create_collection(name, model, description=description, **sizes))
    click.echo(f"Made the collection {name}.", err=True)


@knowledge.command(name="list")
@click.argument("collection", required=False)
@with_json
def list_all(url: str, collection: str | None, as_json: bool) -> None:
    """List collections, or the documents of COLLECTION."""
    if collection is None:
        found = call(url, lambda client: client.collections())["collections"]
        lines = [f"{one['name']}  {counted(one['documents'], 'document')}  {one['model']}" for one in found]
        show(found, as_json, lines, none="There are no collections.")
        return
    documents: list[DocumentView] = []
    after: str | None = ""
    while after is not None:
        page = call(url, partial(_page, collection=collection, after=after))
        documents += page["documents"]
        after = page["next"]
    shown = (
        f"{one['name']}  version {one['version']}  {one['state']}  {one['embedded']} of {one['chunks']} chunks"
        for one in documents
    )
    show(documents, as_json, shown, none="The collection has no documents.")


async def _page(client: AsyncClient, collection: str, after: str) -> DocumentList:
    return await client.documents(collection, after=after)


@knowledge.command()
@click.argument("collection")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", help="Of the document, for one file. Default: that of the file.")
@click.option("--title", default="", help="Shown with results.")
@click.option("--source", default="", help="Where it is from, such as a URL. Cited with results.")
@click.option("--wait", is_flag=True, help="Until searches find it. Exit code 1 if it fails.")
@click.pass_obj
def add(
    url: str, collection: str, files: tuple[Path, ...], name: str | None, title: str, source: str, wait: bool
) -> int:
    """Add FILES to COLLECTION: text, Markdown, HTML, CSV, JSON or PDF.

    A file that is there gets a new version, unless it is unchanged.
    """
    if name is not None and len(files) > 1:
        raise click.UsageError("--name is for one file")
    added = []
    for file in files:
        called, about = name or file.name, {"title": title, "source": source}
        send = partial(_send, collection=collection, name=called, data=file.read_bytes(), about=about)
        one = call(url, send)
        click.echo(f"{called}: version {one['version']}, {counted(one['chunks'], 'chunk')}, {one['state']}", err=True)
        added.append((called, one["version"]))
    seen = [_visible(url, collection, *one) for one in added] if wait else []
    return OK if all(seen) else FAILED


async def _send(client: AsyncClient, collection: str, name: str, data: bytes, about: dict[str, str]) -> DocumentView:
    return await client.add_document(collection, name, data=data, **about)


def _visible(url: str, collection: str, name: str, version: int) -> bool:
    while True:
        versions = call(url, lambda client: client.documents(collection, name=name))["documents"]
        if any(one["state"] == "visible" and one["version"] >= version for one in versions):
            return True
        failed = [one for one in versions if one["state"] == "failed"]
        if failed:
            click.echo(f"{name}: run {failed[-1]['run']} has failed: weft why {failed[-1]['run']}", err=True)
            return False
        time.sleep(WAIT_S)


@knowledge.command()
@click.argument("collection")
@click.argument("query")
@click.option("--limit", default=5, show_default=True, help="Results.")
@click.option("--mode", type=click.Choice(["hybrid", "vector", "text"]), default="hybrid", show_default=True)
@with_json
def search(url: str, collection: str, query: str, limit: int, mode: Mode, as_json: bool) -> None:
    """Search COLLECTION, by meaning and words."""
    found = call(url, lambda client: client.search_knowledge(collection, query, limit=limit, mode=mode))["results"]
    lines = (
        f"{one['score']:.2f}  {one['title']} #{one['position']}  {one['source']}\n{one['text']}\n" for one in found
    )
    show(found, as_json, lines, none="Nothing was found.")


@knowledge.command()
@click.argument("collection")
@click.argument("document", required=False)
@click.pass_obj
def delete(url: str, collection: str, document: str | None) -> None:
    """Delete COLLECTION, or DOCUMENT of it: text, vectors and words."""
    if document is None:
        call(url, lambda client: client.delete_collection(collection))
    else:
        call(url, lambda client: client.delete_document(collection, document))
    click.echo(f"Deleted {document or collection}.", err=True)
