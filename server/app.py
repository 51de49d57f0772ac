"""The ASGI application and its engine: `create_app` puts the parts together, `build_engine` makes the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from executor.blocks.base import Block
from executor.blocks.python import python_blocks
from executor.blocks.registry import Registry
from executor.engine import Engine
from executor.http.client import GuardedClient
from executor.http.own import Own
from executor.sandbox.sandbox import Sandbox
from executor.services import NotifySettings, Services
from executor.store.sqlite.store import SQLiteStore
from server import ui
from server.http import errors
from server.http.auth import Auth
from server.http.rates import HookRates, LinkRates
from server.http.security import Guard
from server.http.sessions import watch_streams
from server.http.sse import Streams
from server.http.table import routes
from server.routes import table_of
from server.routes.demo import Calls
from server.settings import Settings, read_secret
from server.variables import SettingsError

STATIC = Path(__file__).parent / "static"


def create_app(settings: Settings, engine: Engine | None = None, interface: Path | None = None) -> Starlette:
    """The ASGI application. With an `engine` the caller owns it; without one the lifespan builds and closes its own.
    `interface`: folder of the built editor (ui.built()); without one a page says how to build it."""
    secret = read_secret(settings)
    table = table_of(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if engine is None:
            app.state.engine = await build_engine(settings)
        state = app.state
        watching = asyncio.create_task(watch_streams(state.streams, state.auth.sessions, state.engine), name="sessions")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            if engine is None:
                state.streams.close()
                await state.engine.close()

    app = Starlette(
        routes=[
            *routes(table),
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
            *(ui.files(interface) if interface else ()),
        ],
        middleware=[Middleware(Guard, settings=settings)],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # one address for each thing
    errors.install(app)
    app.state.engine = engine
    app.state.settings = settings
    app.state.table = table
    app.state.interface = interface
    app.state.auth = Auth(settings, secret)
    app.state.streams = Streams(settings.limits)
    app.state.link_rates = LinkRates()
    app.state.hook_rates = HookRates()
    app.state.demo_calls = Calls()
    return app


async def build_engine(settings: Settings) -> Engine:
    """Open the database and start the workers. Raises StoreError when the file cannot be used, SettingsError when a
    function cannot be imported."""
    own = own_blocks(settings)
    sandbox = Sandbox()
    services = Services(
        sandbox=sandbox,
        http=GuardedClient(settings.allow_private, own=Own(settings.authority, [settings.base_url])),
        mail=settings.mail,
        notify=NotifySettings(settings.notify_email, settings.notify_webhook),
        env=settings.workflow_env,
        secrets=settings.secret_names,
        base_url=settings.base_url,
    )
    Path(settings.db_path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = await Engine.open(
        store=SQLiteStore(settings.db_path),
        registry=Registry.load(own, sandbox=sandbox),
        services=services,
        secret=read_secret(settings),
        lease_ms=settings.lease_ms,
    )
    engine.upkeep.start(settings.retention_ms)
    return engine


def own_blocks(settings: Settings) -> list[Block]:
    """The block types that the settings add to those of installed packages. Raises SettingsError."""
    try:
        return python_blocks(settings.functions)
    except ValueError as error:
        raise SettingsError(f"WEFT_FUNCTIONS: {error}") from None
