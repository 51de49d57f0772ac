"""weft inside another Python program: an engine with everything it needs, without the server. `weft.open` is this.

    async with open_engine("runs.db", functions={"quote": quote}) as engine:
        run = await engine.run(document, {"amount": 12}, timeout_s=60)
        print(run.status, run.output)

Several programs, and a server, may share the database. The arguments here correspond to the server's settings."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import cache, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec

from compiler.tracing.workflow import Composed
from executor.blocks.connectors.stored import connectors
from executor.blocks.databases.databases import POSTGRES
from executor.blocks.http.binding import checked_hosts
from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.base import Model
from executor.blocks.llm.endpoints import Endpoints, endpoints_of
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import MailSettings, Runners, Services
from executor.blocks.types.functions import blocks_of
from executor.blocks.types.registry import Registry
from executor.blocks.vault import key_file
from executor.blocks.vault.command import External
from executor.errors import BadRequest, DatabaseUnavailable, WrongKey
from executor.kernel.handler.base import Block
from executor.kernel.process.extras import needs_psycopg
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.kernel.worker.bus import Bus
from executor.open.engine import GC_THRESHOLDS, Engine

# Here one run may be all there is to do: each of its steps waits for its commit, and switching to another thread and
# back would take as long as a fast disk needs. A server has other clients, which must not wait for the disk.
COMMIT_HERE_BELOW_S = 0.001
# A program with more has a collection of its own to think of: 250,000 objects take about a tenth of a second.
COLLECTED_MAX = 250_000
# Python's default thresholds, by version. A program that has set others keeps them.
PYTHONS_THRESHOLDS: Final = ((700, 10, 10), (2000, 10, 0), (2000, 10, 10))
USE: Final = (
    "write `async with weft.open(...) as engine:` in an `async def`, and start that with asyncio.run(), or "
    "`with weft.open_sync(...) as engine:` in a program without asyncio"
)
P = ParamSpec("P")


class Opening(AbstractAsyncContextManager[Engine]):
    """The result of `weft.open`, for `async with`."""

    def __init__(self, opened: AbstractAsyncContextManager[Engine]) -> None:
        self._opened = opened

    async def __aenter__(self) -> Engine:
        engine = await self._opened.__aenter__()
        engine.opened_by = self  # a reference to the engine alone keeps it open
        return engine

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._opened.__aexit__(*error)

    if not TYPE_CHECKING:  # a type checker reports these uses itself

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"weft.open() has no {name!r}: {USE}")

        def __enter__(self) -> NoReturn:
            raise TypeError(f"weft.open() cannot be used with a plain `with`: {USE}")

        def __exit__(self, *error: object) -> None: ...

        def __await__(self) -> NoReturn:
            raise TypeError(f"weft.open() cannot be awaited: {USE}")


def _opening(function: Callable[P, AsyncGenerator[Engine, None]]) -> Callable[P, Opening]:
    make = asynccontextmanager(function)

    @wraps(function)
    def opening(*args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(make(*args, **kwargs))

    return opening


@_opening
async def open_engine(
    database: str | Path | None = None,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    workflows: Iterable[Composed] = (),
    blocks: Iterable[Block] = (),
    env: Mapping[str, str] | None = None,
    secrets: Iterable[str] | Mapping[str, Iterable[str]] = (),
    models: Mapping[str, str | Model] | None = None,
    prices: Mapping[str, str] | None = None,
    allow_private: Iterable[str] = (),
    mail: MailSettings | None = None,
    base_url: str = "http://127.0.0.1:8765",
    secret: bytes | None = None,
    processes: int | None = None,
    dask: str | None = None,
    sqlite_folders: Iterable[str | Path] = (),
    file_folders: Iterable[str | Path] = (),
    tune_gc: bool = True,
) -> AsyncGenerator[Engine, None]:
    """Open `database` and work until the block is left. Runs that are open then continue when it is opened again.

    database       a SQLite file, made if missing, or a postgresql:// address; None for a file removed at the end
    functions, blocks  what blocks of type `python` may call, by name; block types beside those of installed packages
    workflows      workflows in Python, with their steps; called ones are stored
    env, secrets   the values that `${NAME}` reads, and the names of secrets among them, kept out of records. With hosts
                   (`{"KEY": ["api.example.com"]}`) the rules of stored secrets hold; a list of names trusts documents
    models         servers of language models, `{"local": "http://127.0.0.1:11434/v1"}` for `local:llama3`
    prices         of these, in US dollars for a million tokens: `{"local": "0.15/0.60"}`, as in WEFT_PRICE_LOCAL
    allow_private  networks and `host:port` that `http` blocks may reach although they are private
    base_url       the address in resume links: the server on the same database, if there is one
    secret         keys those links and seals stored secrets, 16 bytes or more. By default the key file of a SQLite file
                   (`runs.key`, made if missing), as of a server. On PostgreSQL, links end with this program without it
    processes, dask  for `policy.runner`: child processes, None for one a core; a scheduler, `tcp://host:8786`
    sqlite_folders, file_folders  folders with the SQLite files that `sql` blocks may open; whose files may start runs
    tune_gc        lets Python's garbage collector run less often, as `weft serve` does, unless the program has set it

    Raises StoreError if the database or its key cannot be used; DefinitionError if a workflow is no document."""
    flows, environment = list(workflows), environment_of(env or {}, secrets, endpoints_of(models, prices))
    with _store(database) as (store, bus, path), _key(secret, path) as secret, _tuned_gc(tune_gc):
        sandbox = Sandbox()
        registry = Registry.load([*connectors(), *blocks, *blocks_of(flows, functions)], sandbox=sandbox)
        _collect_imported()
        services = Services(
            **environment,
            sandbox=sandbox,
            http=GuardedClient(allow_private=tuple(allow_private)),
            mail=mail or MailSettings(),
            base_url=base_url,
            runners=Runners(processes=processes, dask=dask),
            sqlite_folders=tuple(map(str, sqlite_folders)),
            file_folders=tuple(map(str, file_folders)),
            own_database=path,
        )
        engine = await Engine.open(store, registry=registry, services=services, secret=secret, bus=bus)
        try:
            await engine.workflows.give(flows)
            yield engine
        finally:
            await engine.close()


def environment_of(
    env: Mapping[str, str], secrets: Iterable[str] | Mapping[str, Iterable[str]], endpoints: Endpoints
) -> dict[str, Any]:
    """Return the values, which are secrets, and who gets them. Raises BadRequest: a host is none, or a name has no
    value."""
    if not isinstance(secrets, Mapping):
        return {"env": dict(env), "secrets": frozenset(secrets), "endpoints": endpoints}
    for name in secrets:
        if name not in env:
            raise BadRequest(f"secrets names {name[:100]!r}, which is not in env", code="secret_name_invalid")
    kept = {name: External(env[name], checked_hosts(list(its))) for name, its in secrets.items()}
    keys = {endpoint.key_name for endpoint in endpoints.all()} & kept.keys()
    return {
        "env": {name: value for name, value in env.items() if name not in kept},
        "kept": kept,
        "endpoints": endpoints,
        "model_keys": {name: env[name] for name in keys},
    }


@cache
def _collect_imported() -> None:
    """Collect garbage, once in a process. The collector would otherwise look at all imported objects, tens of
    thousands, among the first runs: 100 of them took a third longer for that. Its settings are not changed."""
    if gc.isenabled() and len(gc.get_objects()) <= COLLECTED_MAX:
        gc.collect()


_tuned: list[tuple[int, int, int]] = []  # for each open engine, the thresholds that were there before the first


@contextmanager
def _tuned_gc(wanted: bool) -> Iterator[None]:
    """Set the thresholds of the collector while engines are open. The last one that closes resets them."""
    if not wanted or not (_tuned or gc.get_threshold() in PYTHONS_THRESHOLDS):
        yield
        return
    _tuned.append(_tuned[0] if _tuned else gc.get_threshold())
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        before = _tuned.pop()
        if not _tuned and gc.get_threshold() == GC_THRESHOLDS:
            gc.set_threshold(*before)


@contextmanager
def _store(database: str | Path | None) -> Iterator[tuple[Store, Bus | None, str | None]]:
    if isinstance(database, str) and database.lower().startswith(POSTGRES):
        with needs_psycopg():
            from executor.kernel.store.postgres.bus import PostgresBus
            from executor.kernel.store.postgres.connection import check_address
            from executor.kernel.store.postgres.store import PostgresStore
        check_address("the database", database)
        yield PostgresStore(database), PostgresBus(database), None
    else:
        with _path(database) as path:
            yield SQLiteStore(path, commit_here_below_s=COMMIT_HERE_BELOW_S), None, str(path)


@contextmanager
def _key(secret: bytes | None, path: str | None) -> Iterator[bytes | None]:
    """Yield the key of the engine on the file at `path`. A new key that is not the database's is removed again."""
    if secret is not None or path is None:
        yield secret
        return
    file = key_file.key_path(path)
    key, is_new = key_file.read_or_make(file)
    try:
        yield key
    except WrongKey as error:
        if is_new:
            file.unlink()
        hint = "pass the key of this database as secret=; it is WEFT_SECRET_KEY of its server, or its key file"
        raise WrongKey(error.message, hint=hint) from None


@contextmanager
def _path(database: str | Path | None) -> Iterator[Path]:
    if database is None:
        with TemporaryDirectory(prefix="weft-", ignore_cleanup_errors=True) as folder:
            yield Path(folder, "weft.db")
    else:
        path = Path(database)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"the folder {path.parent} of the database cannot be made: {error.strerror or error}"
            raise DatabaseUnavailable(
                message, hint="choose a path in a folder that this program may write to"
            ) from None
        if path.is_dir():
            raise DatabaseUnavailable(f"{path} is a folder", hint=f"name a file in it, such as {path / 'weft.db'}")
        yield path
