"""The ASGI application and its engine: `create_app` puts the parts together, `build_engine` makes the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from executor.blocks.connectors.stored import connectors
from executor.blocks.http.addresses import Own
from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Runners, Services
from executor.blocks.types.functions import python_blocks
from executor.blocks.types.registry import Registry
from executor.errors import StoreError
from executor.kernel.handler.base import Block
from executor.kernel.handler.needs import NotifySettings, RunLimits
from executor.kernel.process.extras import needs_psycopg
from executor.kernel.process.tracing import Tracing
from executor.kernel.store.read_only import ReadOnlyStore
from executor.kernel.store.run_rows import DEFAULT_POOL
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.kernel.store.topics.store import Store
from executor.kernel.worker.bus import Bus
from executor.open.engine import Engine
from executor.service.upkeep.sql import open_reading
from server import ui
from server.api import table_of
from server.api.demo import Calls
from server.http.auth import Auth, watch_streams
from server.http.security import Guard
from server.http.streams import Streams
from server.http.table import Table
from server.keys import old_secrets, read_secret, secrets_command
from server.metrics import ProcessMeters
from server.oidc.provider import SignIn
from server.reach import SettingsError
from server.settings import LOST, Settings

STATIC = Path(__file__).parent / "static"


def create_app(
    settings: Settings,
    engine: Engine | None = None,
    interface: Path | None = None,
    process: ProcessMeters | None = None,
) -> Starlette:
    """Return the ASGI application. With an `engine` the caller owns it; without one the lifespan builds and closes its
    own. `interface`: folder of the built editor (ui.built()); without one a page shows how to build it. `process`: the
    meters of the process, if it has any."""
    secret = read_secret(settings)
    process = process or ProcessMeters()
    specs = table_of(settings)
    table = Table(specs)
    oidc = SignIn(settings.oidc, secret, settings.base_url, settings.allow_private) if settings.oidc else None

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if engine is None:
            app.state.engine = await build_engine(settings)
        state = app.state
        watching = asyncio.create_task(watch_streams(state.streams, state.auth, state.engine), name="sessions")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            if oidc is not None:
                await oidc.close()
            if engine is None:
                state.streams.close()
                await state.engine.close()

    app = Starlette(
        routes=[
            *table.routes,
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
            *(ui.files(interface) if interface else ()),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # each page has one address
    table.others = app.router
    app.middleware_stack = Guard(table, settings, process.answered)  # in place of Starlette's own
    app.state.engine = engine
    app.state.settings = settings
    app.state.table = specs
    app.state.interface = interface
    app.state.auth = Auth(settings, secret)
    app.state.oidc = oidc
    app.state.streams = Streams(settings.limits)
    app.state.demo_calls = Calls()
    app.state.process = process
    return app


async def build_engine(settings: Settings, *, work: bool = True) -> Engine:
    """Open the database and start to work. `work=False`: runs, schedules, messages and upkeep are left to other
    processes. Raises StoreError when the file cannot be used, SettingsError when a
    function cannot be imported."""
    work = work and not settings.read_only
    own = own_blocks(settings)
    known = connectors(Path(settings.connectors) if settings.connectors else None)
    sandbox = Sandbox()
    services = Services(
        sandbox=sandbox,
        http=GuardedClient(settings.allow_private, own=Own(settings.authority, [settings.base_url])),
        mail=settings.mail,
        notify=NotifySettings(settings.notify_email, settings.notify_webhook),
        alerts=settings.alerts,
        env=settings.workflow_env,
        secrets=settings.secret_names,
        kept=settings.kept_secrets,
        model_keys=settings.model_keys,
        base_url=settings.base_url,
        is_public=settings.public_url is not None,
        endpoints=Endpoints(settings.models, settings.prices),
        limits=RunLimits(lanes=settings.lanes, queued=settings.queue_max, file_bytes=settings.file_bytes),
        kubernetes=settings.kubernetes,
        sqlite_folders=settings.folders_of_sqlite,
        file_folders=settings.file_folders,
        own_database=None if settings.db_address else settings.db_path,
        runners=Runners(processes=settings.processes, dask=settings.dask),
        secrets_command=secrets_command(settings),
        tracing=Tracing(settings.otlp_url, settings.otlp_header_map) if settings.otlp_url else None,
    )
    engine = await Engine.open(
        store=_store(settings),
        registry=Registry.load([*known, *own], sandbox=sandbox),
        services=services,
        secret=read_secret(settings),
        old_secrets=old_secrets(settings),
        key_is_lost=settings.old_secret_key == LOST,
        lease_ms=settings.lease_ms,
        work=work,
        pools=settings.pools or (DEFAULT_POOL,),
        runs_max=settings.concurrency,
        bus=_bus(settings),
    )
    if work:
        engine.upkeep.start(settings.retention_ms)
    return engine


def _store(settings: Settings) -> Store:
    if settings.read_only:
        store = _store_to_write(settings)
        return ReadOnlyStore(store, lambda: open_reading(settings.db_address or Path(settings.db_path)))
    if settings.db_address is None:
        Path(settings.db_path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _store_to_write(settings)


def _store_to_write(settings: Settings) -> Store:
    if settings.db_address is None:
        return SQLiteStore(settings.db_path)
    with _of_settings():
        with needs_psycopg():
            from executor.kernel.store.postgres.connection import check_address
            from executor.kernel.store.postgres.store import PostgresStore
        check_address("WEFT_DB", settings.db_address)
    return PostgresStore(settings.db_address)


def _bus(settings: Settings) -> Bus | None:
    address = settings.bus_address or settings.db_address
    if settings.db_address is None or address is None:
        return None
    from executor.kernel.store.postgres.bus import PostgresBus
    from executor.kernel.store.postgres.connection import check_address

    with _of_settings():
        check_address("WEFT_BUS_DB", address)
    return PostgresBus(address)


@contextmanager
def _of_settings() -> Iterator[None]:
    """Raise the errors of a database that a setting names as SettingsError."""
    try:
        yield
    except StoreError as error:
        raise SettingsError(error.message) from None


def own_blocks(settings: Settings) -> list[Block]:
    """Return the block types that the settings add to those of installed packages. Raises SettingsError."""
    try:
        return python_blocks(settings.functions)
    except ValueError as error:
        raise SettingsError(f"WEFT_FUNCTIONS: {error}") from None
