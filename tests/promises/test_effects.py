"""Effects: what the other side may have done is not done again, unless that does no harm or the author wants it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.connectors.block import ConnectorBlock
from executor.blocks.connectors.stored import connectors
from executor.blocks.types.agent.calls import effect_of
from executor.blocks.types.agent.tools import read_tools
from executor.blocks.types.registry import Registry
from executor.kernel.run.compiler import plan_of
from tests.support.documents import chain
from tests.support.endpoints import Request, answer, http
from tests.support.runs import engine_on, events_of

REGISTRY = Registry.load(connectors())
QUICK = {"initial_ms": 1, "jitter": 0}


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"type": "http", "params": {"method": method, "url": "http://127.0.0.1/x", **params}}


SHIPPED = {block.connector.service: block.connector for block in connectors() if isinstance(block, ConnectorBlock)}


def connector(service: str, operation: str) -> dict[str, Any]:
    needed = dict.fromkeys(SHIPPED[service].operations[operation].required, "<start.any>")
    return {"type": f"connector.{service}", "params": {"operation": operation, "credential": "x", **needed}}


def with_policy(block: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return {**block, "policy": policy}


ASKED = {
    "POST": request("POST"),
    "PATCH": request("PATCH"),
    "a method that a run decides": request("<start.method>"),
    "email": {"type": "email", "params": {"to": "a@example.org", "subject": "x", "body": "x"}},
    "gmail": connector("gmail", "send"),
    "notion": connector("notion", "create_page"),
    "slack": connector("slack", "add_reaction"),
    "telegram": connector("telegram", "send_photo"),
}
REPEATED = {
    **{method: request(method) for method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE")},
    "a service that knows the header": request("POST", idempotency_header="Idempotency-Key"),
    "what only reads": connector("slack", "read_messages"),
    "a POST that only reads": connector("notion", "query_database"),
    "what sets": connector("slack", "update_message"),
    "s3": connector("s3", "put_object"),
    "a service that is asked first": connector("slack", "send_message"),
    "github": connector("github", "comment"),
    "linear": connector("linear", "create_issue"),
}


def policy_of(block: dict[str, Any]) -> Any:
    plan = plan_of(compile_document(chain("a", a=block), REGISTRY))
    (node,) = (node for node in plan.nodes if node.block == "a")
    return node.policy


@pytest.mark.parametrize("block", ASKED.values(), ids=ASKED)
def test_a_person_is_asked_where_a_repeat_is_not_recognized(block: dict[str, Any]) -> None:
    assert (policy_of(block).on_lost, policy_of(block).on_uncertain) == ("ask", "fail")


@pytest.mark.parametrize("block", REPEATED.values(), ids=REPEATED)
def test_what_does_no_harm_is_repeated(block: dict[str, Any]) -> None:
    assert (policy_of(block).on_lost, policy_of(block).on_uncertain) == ("retry", "retry")


def test_the_author_decides() -> None:
    assert policy_of(with_policy(ASKED["POST"], on_lost="retry")).on_uncertain == "retry"
    retried = policy_of(with_policy(ASKED["POST"], retry={"max_attempts": 2}))
    assert (retried.on_lost, retried.on_uncertain) == ("ask", "retry")
    assert policy_of(with_policy(REPEATED["PUT"], on_lost="ask")).on_lost == "ask"


def answers() -> Iterator[tuple[str, bytes, str, dict[str, Any] | None, int]]:
    failed, later = answer(500), answer(503, retry_after="0")
    yield "a failure", failed, "POST", None, 1
    yield "a failure of what is repeated", failed, "PUT", None, 3
    yield "a failure with a policy", failed, "POST", {"retry": {**QUICK, "max_attempts": 2}}, 2
    yield "an answer that says later", later, "POST", None, 3
    yield "a connection that is cut", b"", "POST", None, 1
    yield "a connection that is cut, of what is repeated", b"", "PUT", None, 3


CASES = {name: case for name, *case in answers()}


@pytest.mark.parametrize(("sent", "method", "policy", "times"), CASES.values(), ids=CASES)
async def test_what_may_have_been_done_is_sent_again_only_if_it_does_no_harm(
    tmp_path: Any, sent: bytes, method: str, policy: dict[str, Any] | None, times: int
) -> None:
    async def handle(request: Request) -> bytes:
        return sent

    async with http(handle) as server, engine_on(tmp_path / "weft.db", allow_private=["127.0.0.1"]) as engine:
        block = request(method, url=f"{server.url}/pay")
        block = block if policy is None else with_policy(block, **policy)
        run = await engine.run(chain("a", a=block), timeout_s=60)
        assert (run.status, len(server.seen)) == ("failed", times)
        if times == 1:
            assert "not repeated" in str(run.error), "the error says why, and what to do"


async def test_a_request_that_was_not_sent_is_sent_again(tmp_path: Any) -> None:
    async with engine_on(tmp_path / "weft.db", allow_private=["127.0.0.1"]) as engine:
        async with http(lambda request: answer(200)) as gone:
            pass
        run = await engine.run(chain("a", a=request("POST", url=gone.url)), timeout_s=60)
        assert run.status == "failed" and len(await events_of(engine, run.id, "retry.scheduled")) == 2


def test_a_tool_of_an_agent_follows_the_same_rule() -> None:
    post = {"name": "pay", "block": "http", "params": {"method": "POST", "url": "http://x"}}
    tools = read_tools([post, {**post, "name": "tell", "on_lost": "retry"}])
    assert effect_of(tools["pay"], {"method": "POST"}) == "write"
    assert effect_of(tools["pay"], {"method": "GET"}) == effect_of(tools["pay"], {"method": "PUT"}) == "read"
    assert effect_of(tools["pay"], {"method": "POST", "idempotency_header": "X-Key"}) == "read"
    assert effect_of(tools["tell"], {"method": "POST"}) == "read"
