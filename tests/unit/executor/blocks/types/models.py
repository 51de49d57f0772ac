"""What tests of blocks that ask a model share: services whose only endpoint is the scripted model server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.kernel.handler.base import StepContext, Stepped
from tests.support.dev_model import DevModel, dev_model
from tests.unit.executor.blocks.types.flow import context


@asynccontextmanager
async def model_services(*rules: dict[str, Any]) -> AsyncIterator[tuple[Services, DevModel]]:
    async with dev_model(*rules) as server:
        services = Services(sandbox=Sandbox(threads=1), http=GuardedClient(), endpoints=Endpoints({"DEV": server.url}))
        try:
            yield services, server
        finally:
            await services.close()


class _Undivided:
    """Steps of a handler that is entered once: each is its work."""

    async def step(self, kind: str, name: str, input: Any, work: Any, effect: str) -> Any:
        done = await work()
        return done.output if isinstance(done, Stepped) else done


def asking(params: dict[str, Any], services: Services) -> StepContext:
    """The context of a block that asks a model."""
    return context(params, services=services, steps=_Undivided)
