"""The client of blocks. Loading the libraries takes seconds, so it happens beside the event loop: with the first call,
or before it where models are configured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.base import Conversation, Embeds, OnDelta, Reply, Usage, Vectors
from executor.blocks.llm.endpoints import Endpoint, Endpoints
from executor.errors import BlockError
from executor.kernel.handler.needs import Waiting
from executor.kernel.process.extras import install

if TYPE_CHECKING:
    from executor.blocks.llm.provider import Provider

REPLIES_MAX = 50  # per process at the same time; further ones wait
DIMENSION_MAX = 4_096  # of the vectors of a model
WITH_FILES_MAX = 8  # those among them that have files in memory
_PROVIDER = "executor.blocks.llm.provider"


class Priced(Struct, frozen=True):
    """A model, and its price in US dollars for a million tokens of input and of output."""

    name: str
    input: float
    output: float


class Offer(Struct, frozen=True):
    """An endpoint of models. `ready`: it needs no key, or the server has it."""

    name: str
    host: str
    ready: bool
    models: list[Priced]


class ModelClient:
    """Shared by all blocks of a process; belongs to the event loop of its first reply. Every connection is made by the
    rules of `http`; the endpoints of the operator may be private, and are open to models alone.

    env   has the keys of the endpoints
    """

    def __init__(
        self, http: GuardedClient, endpoints: Endpoints, env: Mapping[str, str], *, replies: int = REPLIES_MAX
    ) -> None:
        self.endpoints = endpoints
        self._http = http
        self._env = env
        self._room = asyncio.Semaphore(replies)
        self._files_room = asyncio.Semaphore(WITH_FILES_MAX)
        self._provider: Provider | None = None

    async def reply(
        self, conversation: Conversation, on_delta: OnDelta | None = None, *, waiting: Waiting = nullcontext
    ) -> Reply:
        """`on_delta` gets the text piece by piece while it comes; `waiting` is entered while the request waits for one
        of the connections.

        Raises BlockError. Retryable: model_rate_limited (with the time that the server asked for), model_failed (5xx),
        model_timeout, model_connection. Not: model_refused (4xx), model_unknown, model_key_missing, llm_missing,
        address_refused, response_too_large."""
        endpoint, model = self.endpoints.find(conversation.model)
        if endpoint.model is not None:
            reply = await endpoint.model.reply(model, conversation, on_delta)
            return reply if reply.cost is not None else replace(reply, cost=endpoint.cost_of(reply.usage, model))
        key = self._key(endpoint, conversation.api_key, conversation.credential is not None)
        provider = self._provider or await self._begin()
        with waiting() if self._room.locked() else nullcontext():
            await self._room.acquire()
        try:
            if conversation.load is None:
                return await provider.reply(endpoint, model, key, conversation, {}, on_delta)
            with waiting() if self._files_room.locked() else nullcontext():
                await self._files_room.acquire()
            try:
                files = await conversation.load()
                return await provider.reply(endpoint, model, key, conversation, files, on_delta)
            finally:
                self._files_room.release()
        finally:
            self._room.release()

    async def embed(self, name: str, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, from a model of embeddings. Raises BlockError, as `reply` does."""
        endpoint, model = self.endpoints.find(name)
        if endpoint.model is None and endpoint.dialect == "openai":
            key, provider = self._key(endpoint), self._provider or await self._begin()
            async with self._room:
                found = await provider.embed(endpoint, model, key, texts)
        elif hasattr(endpoint.model, "embed"):
            found = await cast(Embeds, endpoint.model).embed(model, texts)
        else:
            message = f"the endpoint {endpoint.name} has no embeddings"
            hint = "use one with the wire format of OpenAI, such as openai:text-embedding-3-small"
            raise BlockError(message, code="model_refused", retryable=False, hint=hint)
        sizes = {len(vector) for vector in found.vectors}
        if len(found.vectors) != len(texts) or len(sizes) != 1 or not 0 < max(sizes) <= DIMENSION_MAX:
            message = f"{name}: the reply has not one vector of at most {DIMENSION_MAX} numbers for each text"
            raise BlockError(message, code="model_failed", retryable=False)
        return found

    async def is_priced(self, name: str) -> bool:
        """Return whether the cost of a model is known before it is asked. Raises BlockError: model_unknown,
        llm_missing."""
        endpoint, model = self.endpoints.find(name)
        if endpoint.cost_of(Usage(), model) is not None:
            return True
        await self._begin()
        cost_of = import_module("executor.blocks.llm.prices").cost_of
        return cost_of(Usage(1, 1), endpoint, model) is not None

    def load_beside(self) -> None:
        """Load the libraries in a thread, if there is a model to ask: an endpoint of the operator, or a key."""
        keys = (endpoint.key_name for endpoint in self.endpoints.all())
        servers = any(endpoint.model is None for endpoint in self.endpoints.named)
        if (servers or any(self._env.get(key) for key in keys)) and find_spec("pydantic_ai") is not None:
            Thread(target=import_module, args=(_PROVIDER,), name="load models", daemon=True).start()

    async def close(self) -> None:
        """Close all connections."""
        if self._provider is not None:
            await self._provider.close()

    def offered(self) -> list[Offer]:
        """Return the endpoints with their models that are known, those that can be asked first. Blocks."""
        listed = import_module("executor.blocks.llm.prices").listed if find_spec("genai_prices") else lambda _: []
        offers = [
            Offer(
                endpoint.name,
                urlsplit(endpoint.url).hostname or "",
                not endpoint.key_required or bool(self._env.get(endpoint.key_name)),
                [Priced(*(name, float(input), float(output))) for name, input, output in listed(endpoint)],
            )
            for endpoint in self.endpoints.all()
        ]
        return sorted(offers, key=lambda offer: (not offer.ready, offer.name))

    def missing(self, model: str) -> str:
        """Return what is missing before this model can be asked without a key of the block, or nothing."""
        try:
            endpoint, _ = self.endpoints.find(model)
        except BlockError as error:
            return error.hint
        if not endpoint.key_required or self._env.get(endpoint.key_name):
            return ""
        return f"Choose a connection or a key in the block, or start the server with WEFT_SECRET_{endpoint.key_name}."

    def _key(self, endpoint: Endpoint, given: str | None = None, is_signed: bool = False) -> str | None:
        if is_signed:
            return None
        key = given or self._env.get(endpoint.key_name) or None
        if key is None and endpoint.key_required:
            raise BlockError(
                f"there is no API key for {endpoint.name}",
                code="model_key_missing",
                retryable=False,
                hint="choose a connection, set API key of the block to a secret, or start the server with "
                f"WEFT_SECRET_{endpoint.key_name}",
            )
        return key

    async def _begin(self) -> Provider:
        if find_spec("pydantic_ai") is None:
            raise BlockError(
                "language models need a library that is not installed on this server",
                code="llm_missing",
                retryable=False,
                hint=f"{install('llm')}; then restart it",
            )
        await asyncio.to_thread(import_module, _PROVIDER)  # another thread may be in the middle of that
        from executor.blocks.llm.provider import Provider

        if self._provider is None:  # another reply may have been quicker
            servers = [endpoint for endpoint in self.endpoints.named if endpoint.model is None]
            self._provider = Provider(self._http.guard(endpoint.place for endpoint in servers))
        return self._provider
