"""Effects that the service is asked about: weft decides alone where the service shows what a lost attempt did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.validate import checked
from executor.errors import BadRequest
from executor.open.engine import Engine
from tests.support.documents import chain
from tests.support.endpoints import Request, Server, answer, http
from tests.support.runs import engine_on, settled, token_of

ORDERS: dict[str, Any] = {
    "format": "weft-connector/1",
    "service": "tea",
    "title": "Tea",
    "base_url": "https://tea.example",
    "operations": {
        "order": {
            "title": "Order",
            "method": "POST",
            "path": "/orders",
            "fields": {"kind": {"type": "string"}, "shop": {"type": "string"}},
            "required": ["kind"],
            "body": {"kind": "{{kind}}", "shop": "{{shop}}", "note": "for {{idempotency_key}}"},
            "check": [
                {
                    "needs": ["kind"],
                    "path": "/orders",
                    "query": {"since": "{{since}}"},
                    "items": "/orders",
                    "mark": "/note",
                    "more": "/more",
                    "size": 3,
                    "doubt": "/robot",
                    "settle_s": 0,
                    "take": {"number": "/number"},
                    "output": {"order": "{{found}}", "number": "{{number}}", "kind": "{{kind}}"},
                }
            ],
        }
    },
}
Look = Callable[[str], bytes]


def said(**body: Any) -> bytes:
    data = orjson.dumps(body)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data)


class Shop:
    """Answers the first order with 500, and what it is asked as `look` says, which gets the note of the order."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.notes: list[str] = []
        self.looks: list[str] = []

    def handle(self, request: Request) -> bytes:
        if request.method == "GET":
            self.looks.append(request.target)
            return self.look(self.notes[0])
        self.notes.append(orjson.loads(request.body)["note"])
        return answer(500) if len(self.notes) == 1 else said(order="the second")


async def started(engine: Engine, server: Server) -> str:
    params = {"operation": "order", "kind": "green", "base_url": server.url}
    block = {"type": "connector.tea", "params": params, "policy": {"retry": {"initial_ms": 1, "jitter": 0}}}
    return (await engine.submit(chain("a", a=block))).run


async def run_of(path: Path, shop: Shop, then: str | None = None) -> Any:
    """The run when it has ended. `then`: the answer to the question that it asks."""
    tea = ConnectorBlock(checked(ORDERS))
    async with (
        http(shop.handle) as server,
        engine_on(path / "weft.db", tea, allow_private=["127.0.0.1"]) as engine,
    ):
        run = await started(engine, server)
        await settled(engine, run)
        waits = await engine.waits.list(run=run)
        assert [wait.kind for wait in waits] == ([] if then is None else ["attention"])
        if then is not None:
            await engine.waits.answer(token_of(waits[0].link), {}, then)
        return await engine.wait_finished(run, 30)


async def test_what_the_service_has_is_the_output(tmp_path: Path) -> None:
    shop = Shop(lambda note: said(orders=[{"note": "of others"}, {"note": note, "number": 7}]))
    run = await run_of(tmp_path, shop)
    assert (run.status, len(shop.notes), len(shop.looks)) == ("succeeded", 1, 1)
    found = {"note": shop.notes[0], "number": 7}
    assert run.output == {"status": 200, "result": {"order": found, "number": 7, "kind": "green"}}
    assert "since=20" in shop.looks[0]


async def test_what_it_does_not_have_is_sent_again(tmp_path: Path) -> None:
    shop = Shop(lambda note: said(orders=[{"note": "of others"}, {"robot": 1, "note": "x"}, {}][:2]))
    run = await run_of(tmp_path, shop)
    assert run.output["result"] == {"order": "the second"}
    assert len(shop.notes) == 2 and len(set(shop.notes)) == 1, "with the same key"


UNCLEAR: dict[str, Look] = {
    "an error": lambda note: answer(403),
    "another answer": lambda note: said(other=[]),
    "a list that continues": lambda note: said(orders=[], more=True),
    "a long list": lambda note: said(orders=[{}, {}, {}]),
    "one that does not show who made it": lambda note: said(orders=[{"robot": 1}]),
}


@pytest.mark.parametrize("look", UNCLEAR.values(), ids=UNCLEAR)
async def test_a_person_is_asked_where_the_service_does_not_tell(tmp_path: Path, look: Look) -> None:
    shop = Shop(look)
    run = await run_of(tmp_path, shop, "retry")
    assert run.output["result"] == {"order": "the second"}
    assert (len(shop.notes), len(shop.looks)) == (2, 1), "the person has decided: it is not asked again"


async def test_what_was_never_sent_is_sent_without_a_look(tmp_path: Path) -> None:
    shop = Shop(lambda note: said(orders=[]))
    shop.notes.append("so that no order fails")
    run = await run_of(tmp_path, shop)
    assert (run.status, shop.looks) == ("succeeded", [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"body": {"kind": "{{kind}}", "shop": "{{shop}}"}}, "sends nothing that it could be found by"),
        ({"check": [{"path": "/{{what}}", "items": "", "mark": "/a"}]}, "no field 'what'"),
        ({"check": [{"path": "/a", "items": "", "mark": "/a", "needs": ["x"]}]}, "no field 'x'"),
        ({"check": [{"path": "/a", "items": "", "mark": "/a", "output": "{{x}}"}]}, "no field 'x'"),
        ({"check": [{"path": "/a", "items": ""}]}, "mark"),
    ],
)
def test_a_check_that_cannot_work_is_refused(change: dict[str, Any], problem: str) -> None:
    order = {**ORDERS["operations"]["order"], **change}
    with pytest.raises(BadRequest) as refused:
        checked({**ORDERS, "operations": {"order": order}})
    assert problem in str(refused.value)
