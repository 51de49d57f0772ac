"""What handlers share in one process: HTTP client, sandbox, mail transport, environment. Built once, closed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

from executor.store.rows import FamilyMax
from executor.threads import FunctionThreads

if TYPE_CHECKING:
    from executor.http.client import GuardedClient
    from executor.sandbox.sandbox import Sandbox


@dataclass(slots=True)
class MailSettings:
    """transport `log` writes mails to the log; `smtp` sends them with aiosmtplib."""

    transport: str = "log"
    sender: str = "weft@localhost"
    host: str = "127.0.0.1"
    port: int = 587
    username: str | None = None
    password: str | None = None
    start_tls: bool | None = None


@dataclass(slots=True)
class NotifySettings:
    """Addresses that hear of every wait for a person, whatever the block says."""

    email: tuple[str, ...] = ()
    webhook: str | None = None


class RunLimits(Struct, frozen=True):
    """Bounds of what runs leave behind: runs below one run; bytes of the outputs of a run, and of a run with all below
    it; of the outputs that runs in memory hold."""

    family: FamilyMax = FamilyMax()
    run_bytes: int = 256 * 1024 * 1024
    family_bytes: int = 1024 * 1024 * 1024
    memory_bytes: int = 128 * 1024 * 1024


@dataclass(slots=True)
class Services:
    """`env` holds the values `${NAME}` may read; those named in `secrets` are taken out of everything that is
    recorded or shown.
    `base_url` is where this server is reached, for links."""

    sandbox: Sandbox
    http: GuardedClient
    mail: MailSettings = field(default_factory=MailSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    base_url: str = "http://127.0.0.1:8765"
    functions: FunctionThreads = field(default_factory=FunctionThreads)
    limits: RunLimits = field(default_factory=RunLimits)

    async def close(self) -> None:
        """Close the connections of the HTTP client and stop the sandbox."""
        await self.http.close()
        self.sandbox.close()
