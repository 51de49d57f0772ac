"""Recorded shapes of a service: what a connector asks, and what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import orjson

from executor.kernel.handler.base import Block
from executor.open.testing.play import Ran, run_block
from executor.open.testing.scripted_http import METHODS, HttpAnswer, HttpRequest, ScriptedHttp

CREDENTIAL: Final = "secret-of-the-test"
# An operation sends these to be found by: they are others in each run.
_SENT: Final = (
    (re.compile(r"weft-[0-9a-f]{32}"), "$key"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), "$uuid"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "$hex"),
)


async def check_recorded(connector: Block, file: Path | str) -> int:
    """Run the cases of a JSON file, `{"cases": [...]}`, and return how many there are. Each has:

    operation, params  of the block; its credential is `secret-of-the-test`
    asked    the requests: `method`, `path`, and if they are to be compared `query`, `headers`, `body`; in all of them
             `$key`, `$uuid` and `$hex` stand for what identifies the attempt
    answers  the answers to them: `status` (200), `body`, a JSON value or a text, `headers`
    result   that of the block; or `error`, the code of its error

    Nothing leaves the process. Raises AssertionError, which names the case and what differs."""
    cases = orjson.loads(Path(file).read_bytes())["cases"]  # noqa: ASYNC240  # small, and nothing else runs
    for n, case in enumerate(cases):
        http = ScriptedHttp()
        answers = iter(case["answers"])
        for method in METHODS:
            http.on(f"{method} *", lambda request, answers=answers: _answer(answers, request))
        takes = "credential" in connector.spec.params["properties"]
        params = {
            "operation": case["operation"],
            **({"credential": "${CREDENTIAL}"} if takes else {}),
            **case["params"],
        }
        once = {"retry": {"max_attempts": 1}}
        ran = await run_block(connector, params, env={"CREDENTIAL": CREDENTIAL}, policy=once, http=http)
        if problems := [*_of_end(case, ran), *_of_requests(case["asked"], http.requests)]:
            raise AssertionError(f"case {n} ({case['operation']}): " + "\n".join(problems))
    return len(cases)


def _answer(answers: Iterator[Mapping[str, Any]], request: HttpRequest) -> HttpAnswer:
    given = next(answers, None)
    if given is None:
        raise AssertionError(f"there is no answer for a further request, {request.method} {request.url}")
    body, headers = given.get("body"), given.get("headers", {})
    raw = body.encode() if isinstance(body, str) else b"" if body is None else None
    return HttpAnswer(given.get("status", 200), body, headers, raw)


def _of_end(case: Mapping[str, Any], ran: Ran) -> Iterator[str]:
    if ran.status == "invalid":
        yield "; ".join(f"{one.pointer}: {one.message}" for one in ran.findings)
    elif "error" in case:
        code = None if ran.error is None else ran.error["code"]
        if code != case["error"]:
            yield f"its error is {code or 'none'}, not {case['error']}"
    elif ran.error is not None:
        yield f"it failed with {ran.error['code']}: {ran.error['message']}"
    elif "result" in case and ran.output["result"] != case["result"]:
        yield f"its result is {ran.output['result']!r}, not {case['result']!r}"


def _of_requests(asked: list[Mapping[str, Any]], sent: list[HttpRequest]) -> Iterator[str]:
    if len(asked) != len(sent):
        yield f"it sent {len(sent)} requests, not {len(asked)}"
    for n, (wanted, request) in enumerate(zip(asked, sent, strict=False)):
        parts = urlsplit(request.url)
        found = {"method": request.method, "path": parts.path, "query": dict(parse_qsl(parts.query))}
        found |= {"headers": {name: request.headers.get(name) for name in wanted.get("headers", {})}}
        found |= {"body": _body(request)}
        for name, value in wanted.items():
            named = _named(found.get(name))
            if value not in (found.get(name), named):
                yield f"{name} of request {n} is {named!r}, not {value!r}"


def _body(request: HttpRequest) -> Any:
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return request.body.decode()


def _named(value: Any) -> Any:
    text = orjson.dumps(value).decode()
    for pattern, name in _SENT:
        text = pattern.sub(name, text)
    return orjson.loads(text)
