"""Protocols of everything that the kernel needs of the floors above it: it is handed the objects, and imports none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from msgspec import Struct

from compiler.plan import Plan
from executor.kernel.process.tracing import Tracing
from executor.kernel.store.topics.families import FamilyMax
from executor.kernel.values.files import BYTES_MAX, Files
from executor.kernel.values.payload import Bound

RulesOf = Mapping[str, Any]  # by the name of a secret: where it may be sent, which blocks alone read
Waiting = Callable[[], AbstractContextManager[Any]]


class Sandbox(Protocol):
    """Evaluates JavaScript. See executor.blocks.sandbox."""

    async def evaluate(self, calls: Sequence[Bound], *, now_ms: int, seed: str, owner: str = "") -> list[Any]: ...

    def matches(self, pattern: str, text: str) -> bool: ...


class Connectors(Protocol):
    """Block types that the database has. `revision` grows with each change that was seen."""

    revision: int

    async def refresh(self) -> None: ...

    async def refresh_for(self, plan: Plan) -> None: ...


class Vault(Protocol):
    """Secrets: handles of them, the values that they stand for, and the hosts that each may be sent to."""

    @property
    def values(self) -> Mapping[str, str]:
        """The values that `${NAME}` reads: the environment, and handles of the secrets that this process has opened."""

    @property
    def opened_names(self) -> frozenset[str]:
        """The names of the opened secrets."""

    async def open(self, names: Collection[str], elsewhere: Collection[str] = frozenset()) -> RulesOf: ...

    def revealed(self, value: Any, rules: RulesOf) -> Any: ...

    def bound(self, rules: RulesOf) -> AbstractContextManager[None]: ...


class Connections(Protocol):
    async def get(self, name: str, stale: Any = None) -> Any: ...


class Response(Protocol):
    """A whole HTTP response. `headers`: names in lower case; `url`: after redirects; `ms`: until the last byte."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    url: str
    ms: int

    @property
    def text(self) -> str: ...

    def json(self) -> Any:
        """Raises BlockError(response_invalid): the body is not JSON."""

    def raise_for_status(self) -> Self:
        """Raises BlockError(http_status) from status 400 on."""


class Http(Protocol):
    """Requests by the rules of this server. See executor.blocks.types.client."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = 5 * 1024 * 1024,
        follow_redirects: bool = True,
    ) -> Response: ...

    async def get(self, url: str, **options: Any) -> Response: ...

    async def post(self, url: str, json: Any = None, **options: Any) -> Response: ...


class NotifySettings(Struct):
    """Addresses that are notified of every wait for a person, in addition to the block's."""

    email: tuple[str, ...] = ()
    webhook: str | None = None


class AlertSettings(Struct):
    """The addresses that are notified of failed runs, of delays (`waiting_ms`: an open wait, `queued_ms`: a run that no
    worker has begun) and of missed times of schedules; the workflow that is started for a failed run, unless its own
    settings name another."""

    email: tuple[str, ...] = ()
    webhook: str | None = None
    waiting_ms: int | None = None
    queued_ms: int | None = None
    error_workflow: str | None = None


class RunLimits(Struct, frozen=True):
    """Bounds of runs below one run; of the bytes of the outputs of a run, of a run with all below it, and of runs in
    memory; of a file. `lanes`: of durable functions that are kept while they wait. `queued`: runs of one pool that may
    wait for a worker, or None for any number."""

    family: FamilyMax = FamilyMax()
    run_bytes: int = 256 * 1024 * 1024
    family_bytes: int = 1024 * 1024 * 1024
    memory_bytes: int = 128 * 1024 * 1024
    file_bytes: int = BYTES_MAX
    lanes: int = 1_000
    queued: int | None = None


class Services(Protocol):
    """The objects that handlers share in one process, as far as the kernel uses them. See executor.blocks.services."""

    secrets: frozenset[str]
    env: Mapping[str, str]
    notify: NotifySettings
    alerts: AlertSettings
    limits: RunLimits
    files: Files | None
    tracing: Tracing | None

    @property
    def sandbox(self) -> Sandbox: ...

    def http_for(self, idempotency_key: str, waiting: Waiting, clock: Callable[[], int]) -> Http:
        """Make the client of one attempt. `waiting` holds its time limit; `clock` is in Unix ms."""
