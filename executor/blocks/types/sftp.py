"""`sftp`: lists, reads, writes, moves and deletes files at an SFTP server.

What changes something is noted in a checkpoint before: an attempt that follows a lost one finds out by it whether the
change was made, and makes no change twice. See docs/howto/sftp.md.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from compiler.catalog import Finding, Params
from executor.blocks.services import Services, services_of
from executor.blocks.types.connected import CONNECTION, signed_in
from executor.blocks.types.declared import block_type
from executor.blocks.types.mail import SERVER, place_of
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param, shape
from executor.blocks.types.polled import digest
from executor.blocks.vault.connection import Credential
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.process.extras import install, loaded
from executor.kernel.values.files import SCHEMA, in_parts, is_file
from executor.kernel.values.payload import render

if TYPE_CHECKING:
    from executor.blocks.types.sftp_client import Entry, Session

T = TypeVar("T")
PORT: Final = 22
LISTED_MAX: Final = 10_000
TIMEOUT_MAX_S: Final = 3_600
PATH_CHARS_MAX: Final = 4_000
_LIST: Final = {"operation": ["list"]}
_WRITE: Final = {"operation": ["write"]}
_MOVE: Final = {"operation": ["move"]}
_PLACES: Final = {"operation": ["write", "move"]}
_WHOLE: Final = "whole"  # the checkpoint of a file that is written and not renamed yet
_READS: Final = ("list", "read")
# Params that the trigger on new files has, too.
AT: Any = changed(SERVER, title="Server", description="host:port, such as sftp.example.com:22.", required=True)
SIGNS_IN: Any = changed(
    CONNECTION,
    description="Signs in by SSH, and has the host key of the server.",
    required=True,
    ui={"auth": {"kind": "ssh", "title": "Password or private key", "name": "", "prefix": "", "host": ""}},
)

NAMES: Any = param("Names", "Such as *.csv. Names that begin with a dot are left out.", default="*")


class _Params(TypedParams):
    operation: str = param(
        "Operation",
        "What to do at the server.",
        default="list",
        weft="literal",
        choices={
            "list": "List a folder", "read": "Read a file", "write": "Write a file", "move": "Move or rename",
            "delete": "Delete a file or an empty folder", "make_folder": "Make a folder",
        },
    )  # fmt: skip
    server: str = AT
    connection: str | None = SIGNS_IN
    path: str = param(
        "Path", "Of the file or folder; without / at its beginning, from the home folder of the user.", required=True,
        pattern=FILLED,
    )  # fmt: skip
    to: str | None = param("New path", "With the name of the file.", when=_MOVE, pattern=FILLED, needed=_MOVE)
    content: Any = param(
        "Content", "A file, or text. Other values are written as JSON.", when=_WRITE, rows=6, needed=_WRITE
    )
    pattern: str = changed(NAMES, when=_LIST)
    max_entries: int = param(
        "Maximum entries", "More are left out; then the output has cut: true.", default=1_000, when=_LIST,
        advanced=True, minimum=1, maximum=LISTED_MAX,
    )  # fmt: skip
    overwrite: bool = param("Overwrite", "Replaces a file that is there.", default=True, when=_PLACES)
    make_folders: bool = param("Make missing folders", "Those above the path.", default=False, when=_PLACES)
    timeout_s: float = param(
        "Timeout (seconds)", "For all of it, with the sign-in.", default=120, advanced=True, exclusiveMinimum=0,
        maximum=TIMEOUT_MAX_S,
    )  # fmt: skip


def _check(params: Params) -> tuple[Finding, ...]:
    needed = {"move": "to", "write": "content"}.get(str(params.get("operation")))
    if needed is None or params.get(needed) not in (None, ""):
        return ()
    title = _Params.json_schema["properties"][needed]["title"]
    return (Finding("required", f"/{needed}", f"{title} is required."),)


ENTRY: Final = shape(path="string", name="string", kind={"enum": ["file", "folder", "link", "other"]}, size="integer",
                     modified="integer")  # fmt: skip
_OUTPUTS: Final = {
    "list": shape(entries={"type": "array", "items": ENTRY}, count="integer", cut="boolean"),
    "read": shape(file=SCHEMA, name="string", path="string", size="integer", modified="integer"),
    "write": shape(path="string", size="integer"),
    "move": shape(path="string", to="string"),
}


@block_type(
    type="sftp",
    title="SFTP",
    description="Lists, reads, writes, moves or deletes files at an SFTP server.",
    category="action",
    params=_Params.json_schema,
    effect="write",
    only_reads=lambda params: params.get("operation") in (None, *_READS),
    check=_check,
    output_from=lambda params: _OUTPUTS.get(params.get("operation") or "list", shape(path="string")),
    attempts=3,
    timeout_ms=TIMEOUT_MAX_S * 1000,
    sentence="{operation} {path} | {operation} at {server} | Use an SFTP server",
    icon="file",
)
async def block(ctx: StepContext) -> Done:
    """Output: see `_OUTPUTS`. Raises BlockError: params_invalid, file_too_large, file_not_found, sftp_exists,
    sftp_changed, not_installed, and those of `sftp_client.session` and of connections."""
    params = _Params(ctx.params)
    for path in (params.path, params.to or ""):
        if len(path) > PATH_CHARS_MAX or any(ord(character) < 0x20 for character in path):
            raise invalid(f"a path must be one line of at most {PATH_CHARS_MAX:,} characters")
    work = _OPERATIONS[params.operation]
    return Done(
        await at_server(ctx, params.server, params.connection, params.timeout_s, lambda at: work(ctx, at, params))
    )


async def at_server(
    ctx: StepContext, server: str, connection: str | None, timeout_s: float, work: Callable[[Session], Awaitable[T]]
) -> T:
    """Sign in to a server, and return what `work` returns. Raises BlockError."""

    async def ask(credential: Credential | None) -> T:
        if credential is None or credential.kind != "ssh":
            raise invalid("the connection cannot sign in to an SFTP server", "choose a connection of the kind SSH")
        async with await _session(services_of(ctx), server, credential, timeout_s) as session:
            return await work(session)

    return await signed_in(ctx, connection, ask)


async def check(services: Services, server: str, credential: Credential, timeout_s: float) -> None:
    """Sign in to a server. Raises BlockError."""
    async with await _session(services, server, credential, timeout_s):
        pass


async def _session(
    services: Services, server: str, credential: Credential, timeout_s: float
) -> AbstractAsyncContextManager[Session]:
    place = place_of(server, PORT)
    client = await loaded("executor.blocks.types.sftp_client", lambda: f"SFTP needs asyncssh: {install('sftp')}")
    opened: AbstractAsyncContextManager[Session] = client.session(services, place, credential, timeout_s)
    return opened


async def listed(at: Session, folder: str, pattern: str, most: int, *, only_files: bool = False) -> list[Entry]:
    """Return at most one entry more than `most`, by name."""
    found: list[Entry] = []
    async with aclosing(at.names(folder)) as names:
        async for entry in names:
            hidden = entry.name.startswith(".") and not pattern.startswith(".")
            if not hidden and fnmatchcase(entry.name, pattern) and (entry.kind == "file" or not only_files):
                found.append(entry)
                if len(found) > most:
                    break
    return sorted(found, key=lambda entry: entry.name)


async def _list(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    found = await listed(at, params.path, params.pattern, params.max_entries)
    entries = [msgspec.structs.asdict(entry) for entry in found[: params.max_entries]]
    return {"entries": entries, "count": len(entries), "cut": len(found) > len(entries)}


async def _read(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    entry = await at.stat(params.path)
    async with aclosing(at.content(entry, ctx.files.bytes_max)) as content:
        file = await ctx.files.save(content, entry.name)
    return {"file": file.value, "name": entry.name, "path": entry.path, "size": file.size, "modified": entry.modified}


async def _write(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    """Write to a name beside it, note that this is whole, and rename it. If it is gone afterwards, it was renamed."""
    if params.content is None:
        raise invalid("content is required")
    if is_file(params.content):
        file, content = await ctx.files.stream(params.content)
        size = file.size
    else:
        data = await asyncio.to_thread(lambda: render(params.content).encode("utf-8", "replace"))
        size, content = len(data), in_parts(data)
    folder = posixpath.dirname(params.path)
    part = posixpath.join(folder, f".weft-{digest(ctx.idempotency_key)}.part")
    is_whole = ctx.last_checkpoint == _WHOLE
    if not is_whole:
        if not params.overwrite:
            await at.check_free(params.path)
        await _make_above(at, params.path, params)
        await at.write(part, content, size)
        await ctx.checkpoint(_WHOLE)
    if not is_whole or await at.find(part) is not None:
        await at.place(part, params.path, overwrite=params.overwrite)
    return {"path": params.path, "size": size}


async def _move(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    if params.to is None:
        raise invalid("to is required")
    if await _noted(ctx, at, params.path) is not None:
        await _make_above(at, params.to, params)
        await at.rename(params.path, params.to, overwrite=params.overwrite)
    return {"path": params.path, "to": params.to}


async def _delete(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    if (entry := await _noted(ctx, at, params.path)) is not None:
        await at.remove(entry)
    return {"path": params.path}


async def _noted(ctx: StepContext, at: Session, path: str) -> Entry | None:
    """Find what is about to go, and note it. Return None if an attempt before noted it and it is gone: that attempt
    made the change, and what is there now is another file. Raises BlockError(sftp_not_found)."""
    entry = await at.find(path)
    if ctx.last_checkpoint is not None:
        return entry if entry is not None and digest(entry.id) == ctx.last_checkpoint else None
    if entry is None:
        raise BlockError(f"there is no {path[:200]!r}", code="sftp_not_found", retryable=False)
    await ctx.checkpoint(digest(entry.id))
    return entry


async def _make_folder(ctx: StepContext, at: Session, params: _Params) -> dict[str, Any]:
    await at.make(params.path)
    return {"path": params.path}


async def _make_above(at: Session, path: str, params: _Params) -> None:
    if params.make_folders and (folder := posixpath.dirname(path)) not in ("", "/"):
        await at.make(folder)


_OPERATIONS: Final = {
    "list": _list, "read": _read, "write": _write, "move": _move, "delete": _delete, "make_folder": _make_folder,
}  # fmt: skip
