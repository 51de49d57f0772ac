"""A shop that calls those who registered there when it has a new order, and tries again until they answer well. It
chooses the secret itself, or sends it first, or takes that of the one who registers."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import WeftError
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.open.testing.engines import SECRET, ManualClock
from executor.service.triggers.requests import Received
from tests.support.endpoints import Request, answer, http
from tests.support.polled import Shop

Mode = Literal["own", "given", "handshake"]
EXPIRES_S = 7 * 86_400
RETRIES = 40


def made_answer(status: int, body: Any = None) -> bytes:
    return answer(status, b"" if body is None else json.dumps(body).encode(), content_type="application/json")


class HookedShop(Shop):
    """`hooks` are registered, by id. `counts`: how many there were at each order that was asked for. `now_s`: the clock
    by which registrations expire. `refuses`: the status of all requests about them."""

    def __init__(self, mode: Mode = "own") -> None:
        super().__init__()
        self.mode: Mode = mode
        self.hooks: dict[str, dict[str, Any]] = {}
        self.counts: list[int] = []
        self.calls: list[str] = []
        self.now_s = 1_800_000_000
        self.refuses = 0
        self.delivered: list[int] = []
        self.tasks: set[asyncio.Task[None]] = set()

    async def handle(self, request: Request) -> bytes:
        path = urlsplit(request.target).path
        if path == "/add":
            (name,) = parse_qs(urlsplit(request.target).query)["name"]
            if name not in [order["name"] for order in self.orders]:
                self.counts.append(len(self.hooks))
                self.sell(name)
            return made_answer(200, {})
        if not path.startswith("/hooks"):
            return await super().handle(request)
        self.calls.append(f"{request.method} {path}")
        if self.refuses:
            return made_answer(self.refuses, {"message": "no more hooks here"})
        _, _, id, what = [*path.split("/"), "", ""][:4]
        if id and id not in self.hooks:
            return made_answer(404)
        if request.method == "DELETE":
            del self.hooks[id]
            return made_answer(204)
        if what == "renew":
            self.hooks[id]["expires"] = self.now_s + EXPIRES_S
            return made_answer(200, self._shown(id))
        if request.method == "POST":
            return await self._create(json.loads(request.body))
        return made_answer(200, {"hooks": [self._shown(one) for one in self.hooks]})

    def sell(self, *names: str) -> None:
        """Add orders, and report them."""
        self.add(*names)
        for id in self.hooks:
            task = asyncio.create_task(self.deliver(id, {"name": names[-1]}))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def deliver(self, id: str, body: Any, secret: str | None = None) -> None:
        content = json.dumps(body).encode()
        for _ in range(RETRIES):
            if id not in self.hooks:
                return
            status = await self._post(self.hooks[id]["url"], content, secret or self.hooks[id]["secret"])
            self.delivered.append(status)
            if status < 300 or secret is not None:
                return
            await asyncio.sleep(0.1)

    async def _post(self, url: str, content: bytes, secret: str) -> int:
        key = base64.b64decode(secret) if self.mode == "given" else secret.encode()
        headers = {"X-Shop-Signature": "mac=" + hmac.new(key, content, hashlib.sha256).hexdigest()}
        async with httpx.AsyncClient(timeout=5) as client:
            try:
                return (await client.post(url, content=content, headers=headers)).status_code
            except httpx.HTTPError:
                return 599

    async def _create(self, body: dict[str, Any]) -> bytes:
        secret = body.get("secret") or base64.b64encode(hashlib.sha256(str(len(self.calls)).encode()).digest()).decode()
        if self.mode == "handshake":
            async with httpx.AsyncClient(timeout=5) as client:
                try:
                    echo = await client.post(body["url"], headers={"X-Shop-Secret": secret})
                except httpx.HTTPError:
                    return made_answer(403)
            if echo.headers.get("X-Shop-Secret") != secret:
                return made_answer(403)
        id = str(len(self.calls))
        self.hooks[id] = {"url": body["url"], "secret": secret, "expires": self.now_s + EXPIRES_S}
        given = {"secret": secret} if self.mode == "given" else {}
        return made_answer(201, {"hook": {**self._shown(id)["hook"], **given}})

    def _shown(self, id: str) -> dict[str, Any]:
        return {"hook": {"id": int(id), "target": self.hooks[id]["url"], "until": self.hooks[id]["expires"]}}

    def document(self) -> dict[str, Any]:
        document = super().document()
        document["events"]["new_order"]["push"] = {"topic": "orders"}
        secret = {"secret": "{{hook_secret}}"} if self.mode == "own" else {}
        body = {"url": "{{hook_url}}", "about": "{{topic}}", **secret}
        document["hooks"] = {
            "create": {"method": "POST", "path": "/hooks", "body": body},
            "list": {"path": "/hooks", "query": {"shop": "{{shop}}"}},
            "delete": {"method": "DELETE", "path": "/hooks/{{hook_id}}"},
            "renew": {"method": "POST", "path": "/hooks/{{hook_id}}/renew"},
            "items": "/hooks",
            "id": "/hook/id",
            "url": "/hook/target",
            "expires": "/hook/until",
            "proof": {"kind": "hmac", "header": "x-shop-signature", "prefix": "mac="},
        }  # fmt: skip
        if self.mode == "given":
            document["hooks"] |= {"secret": "/hook/secret"}
            document["hooks"]["proof"]["key"] = "base64"
        if self.mode == "handshake":
            document["hooks"]["handshake"] = {"header": "x-shop-secret"}
        return document


@asynccontextmanager
async def hooked_shop(mode: Mode = "own") -> AsyncIterator[HookedShop]:
    one = HookedShop(mode)
    async with http(one.handle) as server:
        one.place = server.place
        yield one
        for task in list(one.tasks):
            task.cancel()


@asynccontextmanager
async def public(engine: Engine, port: int) -> AsyncIterator[None]:
    """The address of the engine to services, as its server has it."""

    async def receive(request: Request) -> bytes:
        parts = urlsplit(request.target)
        received = Received(request.method, request.headers, [], request.body)
        try:
            reply = await engine.hooks.receive(parts.path.removeprefix("/hooks/"), received, lambda auth: None)
        except WeftError as error:
            return answer(401, error.code.encode())
        headers: dict[str, Any] = {name.replace("-", "_"): value for name, value in reply.headers.items()}
        return answer(200, reply.text.encode(), **headers)

    async with http(receive, port=port):
        yield


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def public_engine(
    service: HookedShop,
    store: Store,
    port: int,
    clock: ManualClock,
    *,
    secret: bytes = SECRET,
    is_front: bool = True,
    is_public: bool = True,
) -> AsyncIterator[Engine]:
    """An engine whose address the service can call, unless another one has the port (`is_front`)."""
    sandbox = Sandbox(threads=1)
    engine = await Engine.open(
        store,
        registry=Registry.load([service.block()], sandbox=sandbox),
        services=Services(
            sandbox=sandbox,
            http=GuardedClient(("127.0.0.1",)),
            base_url=f"http://127.0.0.1:{port}",
            is_public=is_public,
        ),
        secret=secret,
        old_secrets=() if secret == SECRET else (SECRET,),
        clock=clock,
    )
    try:
        async with public(engine, port) if is_front else nullcontext():
            yield engine
    finally:
        await engine.close(grace_s=0)
