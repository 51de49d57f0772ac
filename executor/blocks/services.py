"""The services that handlers share in one process: HTTP client, sandbox, mail transport, environment. Built once,
closed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from msgspec import Raw, Struct

from executor.blocks.databases.databases import Databases
from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.mcp.client import ToolClient
from executor.blocks.runners.call import ATTEMPT, Call, Runner
from executor.blocks.runners.dask import DaskRunner
from executor.blocks.runners.process import ProcessRunner
from executor.blocks.types.client import Http
from executor.blocks.vault.command import External, SecretsCommand
from executor.errors import BlockError
from executor.kernel.handler.needs import AlertSettings, NotifySettings, RunLimits, Waiting
from executor.kernel.process.threads import FunctionThreads
from executor.kernel.process.tracing import Tracing
from executor.kernel.values.files import Files

if TYPE_CHECKING:
    from executor.blocks.http.client import GuardedClient
    from executor.blocks.knowledge.collections import Knowledge
    from executor.blocks.sandbox.sandbox import Sandbox
    from executor.blocks.types.registry import Registry
    from executor.kernel.handler.base import StepContext


class MailSettings(Struct):
    """transport `log` writes mails to the log; `smtp` sends them with aiosmtplib."""

    transport: str = "log"
    sender: str = "weft@localhost"
    host: str = "127.0.0.1"
    port: int = 587
    username: str | None = None
    password: str | None = None
    start_tls: bool | None = None


class Runners:
    """The runners of a process. `processes`: child processes at the same time; None for one a core. `dask`: the address
    of the scheduler of a cluster."""

    def __init__(self, *, processes: int | None = None, dask: str | None = None) -> None:
        self._processes = processes
        self._dask = dask
        self._made: dict[str, Runner] = {}

    def get(self, name: str) -> Runner:
        runner = self._made.get(name)
        if runner is None:
            runner = self._made[name] = self._make(name)
        return runner

    async def close(self) -> None:
        for runner in self._made.values():
            await runner.close()

    def _make(self, name: str) -> Runner:
        if name == "process":
            return ProcessRunner(self._processes)
        if name == "dask" and self._dask is not None:
            return DaskRunner(self._dask)
        raise BlockError(
            f"there is no runner {name!r} here",
            code="runner_unavailable",
            retryable=False,
            hint="set WEFT_DASK to the address of a scheduler, such as tcp://10.0.0.5:8786" if name == "dask" else "",
        )


@dataclass(slots=True, eq=False, repr=False)
class Services:
    """The services of one process. `env` holds the values `${NAME}` may read; those named in `secrets` are removed from
    everything that is recorded or shown. `kept`: secrets of the environment, which follow the rules of stored ones.
    `model_keys`: for `endpoints` alone. `base_url` is where this server is reached, for links; `is_public`: also by
    services. `kubernetes`: the namespaces in which `job` blocks may create Jobs. `endpoints`: the servers of language
    models that `models` reaches.
    `tool_servers` calls MCP servers. `sqlite_folders` have the files that `sql` blocks may open, except `own_database`.
    `secrets_command` is called for secrets that are not stored. `files`, `registry`, `knowledge`: of the engine,
    which sets them.
    `file_folders` have the files that start runs. `tracing`: of a process that exports traces."""

    sandbox: Sandbox
    http: GuardedClient
    mail: MailSettings = field(default_factory=MailSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    kept: Mapping[str, External] = field(default_factory=dict)
    model_keys: Mapping[str, str] = field(default_factory=dict)
    base_url: str = "http://127.0.0.1:8765"
    is_public: bool = False
    functions: FunctionThreads = field(default_factory=FunctionThreads)
    kubernetes: tuple[str, ...] = ()
    runners: Runners = field(default_factory=Runners)
    limits: RunLimits = field(default_factory=RunLimits)
    files: Files | None = None
    registry: Registry | None = None
    knowledge: Knowledge | None = None
    endpoints: Endpoints = field(default_factory=Endpoints)
    models: ModelClient = field(init=False)
    tool_servers: ToolClient = field(init=False)
    sqlite_folders: tuple[str, ...] = ()
    own_database: str | None = None
    file_folders: tuple[str, ...] = ()
    databases: Databases = field(init=False)
    secrets_command: SecretsCommand | None = None
    tracing: Tracing | None = None

    def __post_init__(self) -> None:
        self.models = ModelClient(self.http, self.endpoints, {**self.env, **self.model_keys})
        self.tool_servers = ToolClient(self.http)
        self.databases = Databases(self.http, self.sqlite_folders, own=self.own_database)

    @property
    def names(self) -> frozenset[str]:
        """The names that `${NAME}` can read from the environment, secrets included."""
        return frozenset(self.env) | frozenset(self.kept)

    def http_for(self, idempotency_key: str, waiting: Waiting, clock: Callable[[], int]) -> Http:
        """Make the HTTP client of one attempt. `waiting` holds its time limit; `clock` is in Unix ms."""
        return Http(self.http, idempotency_key, waiting, clock)

    async def close(self) -> None:
        """Close the connections of the HTTP client, stop the sandbox and the runners."""
        await self.runners.close()
        await self.databases.close()
        await self.models.close()
        await self.tool_servers.close()
        await self.http.close()
        if self.secrets_command is not None:
            await self.secrets_command.close()
        self.sandbox.close()


def services_of(ctx: StepContext) -> Services:
    """The services of an attempt, with what only blocks of weft use."""
    return cast("Services", ctx.services)


async def call_elsewhere(
    ctx: StepContext, place: str, function: str, arguments: bytes, context: str | None = None
) -> Any:
    """Call the function at `place` with `arguments`, a JSON object, and return its result. `function`: its name in
    messages. `context`: its parameter for the attempt. Raises the function's BlockError or Fenced, and Lost."""
    call = Call(
        place=place,
        function=function,
        arguments=Raw(arguments),
        context=context,
        **{name: getattr(ctx, name) for name in ATTEMPT},
    )
    return await services_of(ctx).runners.get(ctx.runner).call(call, ctx)
