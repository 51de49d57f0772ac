"""A sample of the same documents through the whole application: it may refuse, it may not fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import given

from server.app import build_engine, create_app
from server.settings import Settings
from tests.fuzz.budget import examples
from tests.fuzz.documents import documents
from tests.fuzz.mutations import spoiled
from tests.fuzz.oracle import leads_somewhere
from tests.fuzz.params import FUNCTIONS

pytestmark = pytest.mark.proof

BASE = "http://127.0.0.1:8765"
JSON = {"content-type": "application/json"}
Post = Callable[[str, bytes], httpx.Response]


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    """One engine and one loop for all examples; runs go on between requests."""
    settings = Settings(
        db_path=str(tmp_path_factory.mktemp("fuzz") / "weft.db"),
        secret_key="a secret for tests only",
        functions=tuple(f"tests.fuzz.params:{name}" for name in FUNCTIONS),
        models={"OPENAI": "http://127.0.0.1:9/v1"},  # nothing listens there
    )
    with asyncio.Runner() as runner:
        engine = runner.run(build_engine(settings))
        transport = httpx.ASGITransport(app=create_app(settings, engine))  # raises what the application raises
        client = httpx.AsyncClient(transport=transport, base_url=BASE)

        def call(path: str, body: bytes) -> httpx.Response:
            request: Coroutine[Any, Any, httpx.Response] = client.post(path, content=body, headers=JSON)
            return runner.run(request)

        yield call
        runner.run(client.aclose())
        runner.run(engine.close(grace_s=1))


@examples(100)
@given(data=spoiled() | documents().map(orjson.dumps))
def test_no_document_is_answered_with_an_error_of_ours(post: Post, data: bytes) -> None:
    for path, body in (
        ("/api/validate", data),
        ("/api/workflows", data),
        ("/api/runs", b'{"document": ' + data + b', "input": {"n": 2}}'),
        ("/api/runs?wait=0", b'{"document": ' + data + b', "input": ' + data + b"}"),
    ):
        response = post(path, body)
        if "weft-run" in response.headers:
            continue  # the run has ended, and this is what its response block wrote
        assert response.status_code < 500, response.text
        if response.status_code >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            _tells_where(response.json(), data, body)


def _tells_where(problem: dict[str, Any], data: bytes, body: bytes) -> None:
    """Pointers lead into the document for what is wrong with it, and else into the body."""
    assert problem["detail"] and problem["code"]
    if problem["code"] == "document_invalid":
        assert problem["diagnostics"]
        for pointer in (problem["pointer"], *(found["pointer"] for found in problem["diagnostics"])):
            assert leads_somewhere(_json(data), pointer), (problem["code"], pointer)
    else:
        assert leads_somewhere(_json(body), problem["pointer"]), problem


def _json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
