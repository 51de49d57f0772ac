"""`knowledge`: searches a collection of documents, adds one to it, or deletes one."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from msgspec import to_builtins

from compiler.catalog import Finding, Params
from executor.blocks.knowledge.collections import RESULTS_MAX, Knowledge, Mode, Text, for_blocks
from executor.blocks.services import services_of
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import FILLED, TypedParams, invalid, param, shape
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.files import is_file
from executor.kernel.values.payload import render

_NEEDS: Final = {"search": ("query",), "add": ("name", "content"), "delete": ("name",), "embed": ("name",)}
# Params that the model of an agent may fill in.
ARGUMENTS: Final = frozenset({"query", "limit", "name", "content", "title", "source"})


def _required(*operations: str) -> dict[str, Any]:
    return {"x-required": {"operation": list(operations)}}


class _Params(TypedParams):
    collection: str = param(
        "Collection", "Name of a collection under Knowledge.", required=True, pattern=FILLED, ui={"choices": []}
    )
    operation: str = param(
        "Operation",
        "To add, delete or embed, the block needs a document.",
        default="search",
        weft="literal",
        choices={
            "search": "Search",
            "add": "Add a document",
            "delete": "Delete a document",
            "embed": "Embed a version that is pending",
        },
        type="string",
    )
    query: str | None = param(
        "Query",
        "A question, or words.",
        when={"operation": ["search"]},
        widget="longtext",
        rows=2,
        **_required("search"),
    )
    limit: int = param("Results", "At most.", when={"operation": ["search"]}, default=5, minimum=1, maximum=RESULTS_MAX)
    mode: str = param(
        "Search by",
        "Meaning needs the model of the collection, words do not.",
        when={"operation": ["search"]},
        default="hybrid",
        advanced=True,
        choices={"hybrid": "Meaning and words", "vector": "Meaning", "text": "Words"},
        type="string",
    )
    name: str | None = param(
        "Document",
        "Identifies it in the collection. One that is there gets a new version.",
        when={"operation": ["add", "delete", "embed"]},
        maxLength=500,
        **_required("add", "delete", "embed"),
    )
    content: Any = param(
        "Content",
        "A text or a file.",
        when={"operation": ["add"]},
        rows=6,
        widget="longtext",
        **_required("add"),
    )
    title: str | None = param("Title", "Shown with results.", when={"operation": ["add"]}, maxLength=500)
    source: str | None = param(
        "Source", "Where it is from, such as a URL. Cited with results.", when={"operation": ["add"]}, maxLength=2_000
    )


# The arguments of a tool that searches, if its author lists none.
QUESTION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for: a question, or words.", "minLength": 1}
    },
    "required": ["query"],
    "additionalProperties": False,
}


def of_tool(params: Params) -> dict[str, Any]:
    """Return the params of a tool of an agent. If it searches, the model writes the query, unless the author did."""
    searches = params.get("operation") in (None, "", "search")
    return {"query": "{{query}}", **params} if searches else dict(params)


def _check(params: Params) -> tuple[Finding, ...]:
    lacking = [
        name for name in _NEEDS.get(str(params.get("operation") or "search"), ()) if params.get(name) in (None, "")
    ]
    titles = {name: _Params.json_schema["properties"][name]["title"] for name in lacking}
    return tuple(Finding("required", f"/{name}", f"{titles[name]} is required.") for name in lacking)


@block_type(
    type="knowledge",
    title="Knowledge",
    description="Searches a collection of documents by meaning and by words, or changes it.",
    category="data",
    params=_Params.json_schema,
    effect="write",
    idempotent=True,
    only_reads=lambda params: params.get("operation") in (None, "search"),
    check=_check,
    output=shape(
        results={
            "type": "array",
            "items": shape(
                text="string",
                score="number",
                similarity=["number", "null"],
                document="string",
                version="integer",
                title="string",
                source="string",
                position="integer",
            ),
        },
        document="string",
        version="integer",
        chunks="integer",
        status="string",
        added="boolean",
        deleted="boolean",
    ),
    attempts=5,
    sentence="Search {collection} for {query} | Change {collection} | Search documents",
    icon="knowledge",
)
async def block(ctx: StepContext) -> Done:
    """Output {"results"} of a search; {"document", "version", "chunks", "status", "added"} of a version, {"document",
    "deleted"}. Raises BlockError: params_invalid, collection_not_found, knowledge_unreadable, limit_knowledge, and
    those of the model."""
    params = _Params(ctx.params)
    knowledge = services_of(ctx).knowledge
    if knowledge is None:
        raise BlockError("collections are not available here", code="knowledge_not_available", retryable=False)
    if found := _check(ctx.params):
        raise invalid(found[0].message)
    with for_blocks():
        return Done(await _done(ctx, params, knowledge))


async def _done(ctx: StepContext, params: _Params, knowledge: Knowledge) -> dict[str, Any]:
    if params.operation == "search":
        mode: Mode = "text" if params.mode == "text" else "vector" if params.mode == "vector" else "hybrid"
        results = await knowledge.search(params.collection, params.query or "", params.limit, mode)
        return {"results": to_builtins(results)}
    name = params.name or ""
    if params.operation == "delete":
        return {"document": name, "deleted": await knowledge.delete(params.collection, name)}
    if params.operation == "add":
        text = await _text(ctx, params)

        async def add() -> list[Any]:
            with for_blocks():
                stored = await knowledge.add(params.collection, text, ctx.run_id, ctx.run_id)
            return [stored.document.n, stored.added]

        asked = {"collection": params.collection, "name": name, "sha256": hashlib.sha256(text.data).hexdigest()}
        document, added = await ctx.step("step", "add", asked, add, effect="read")
    else:

        async def find() -> int | None:
            return await knowledge.pending(params.collection, name)

        asked = {"collection": params.collection, "name": name}
        document, added = await ctx.step("step", "find", asked, find, effect="read"), True
    row = None if document is None else await knowledge.embed(ctx, document)
    if row is None:
        return {"document": name, "status": "gone", "added": False}
    return {"document": row.name, "version": row.version, "chunks": row.chunks, "status": row.status, "added": added}


async def _text(ctx: StepContext, params: _Params) -> Text:
    content, about = params.content, {"title": params.title or "", "source": params.source or ""}
    if is_file(content):
        file = await ctx.files.find(content)
        return Text(params.name or file.name, await ctx.files.read(content), file.media_type, **about)
    redact = ctx.services.files.redact if ctx.services.files is not None else str
    text = redact(content if isinstance(content, str) else render(content))
    kind = "text/plain" if isinstance(content, str) else "application/json"
    return Text(params.name or "", text.encode("utf-8", "replace"), kind, **about)
