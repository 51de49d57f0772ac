from __future__ import annotations

from typing import Any

import pytest

import weft
from executor.open.testing.play import run_block
from executor.open.testing.scripted_http import HttpAnswer, HttpRequest, ScriptedHttp

URL = "https://api.example.com/prices/tea?currency=eur"
RETRY = {"retry": {"max_attempts": 3, "initial_ms": 1}}


async def ask(http: ScriptedHttp, policy: Any = None, **params: Any) -> Any:
    return await run_block("http", {"url": URL, **params}, policy=policy, http=http)


async def test_a_request_gets_its_answer_and_is_recorded() -> None:
    http = ScriptedHttp({"GET https://api.example.com/prices/*": {"price": 3}})
    ran = await ask(http)
    assert (ran.status, ran.output["status"], ran.output["body"]) == ("succeeded", 200, {"price": 3})
    [sent] = http.requests
    assert (sent.method, sent.url, sent.body) == ("GET", URL, b"")
    assert sent.headers["user-agent"] == "weft"


async def test_answers_come_one_after_the_other_and_the_last_one_stays() -> None:
    http = ScriptedHttp().on(f"GET {URL}", HttpAnswer(503), ConnectionResetError("gone"), lambda asked: asked.url)
    ran = await ask(http, RETRY)
    assert (ran.attempts, ran.output["body"]) == (3, URL)
    assert (await ask(http)).output["body"] == URL


async def test_status_headers_and_bytes_are_those_of_the_answer() -> None:
    answer = HttpAnswer(404, body=b"no tea", headers={"Content-Type": "text/plain"})
    ran = await ask(ScriptedHttp().on("GET *", answer))
    assert ran.error["code"] == "http_status" and "404" in ran.error["message"] and "no tea" in ran.error["message"]


async def test_a_redirect_is_followed_by_the_rules_of_the_client() -> None:
    there = HttpAnswer(302, headers={"location": "https://other.example.com/tea"})
    http = ScriptedHttp().on(f"GET {URL}", there).on("GET https://other.example.com/*", "moved")
    ran = await ask(http)
    assert ran.output["body"] == "moved"
    assert [each.url for each in http.requests] == [URL, "https://other.example.com/tea"]


async def test_the_last_pattern_that_fits_answers_and_only_the_star_is_special() -> None:
    http = ScriptedHttp().on("GET *", "any").on("GET https://api.example.com/prices/tea?*", "tea")
    assert (await ask(http)).output["body"] == "tea"
    assert http.answer(HttpRequest("GET", "https://api.example.com/prices/teas")).json == "any"


async def test_a_request_without_an_answer_fails_at_once_and_names_it() -> None:
    ran = await ask(ScriptedHttp({"POST https://api.example.com/*": {}}), RETRY)
    assert (ran.attempts, ran.error["code"]) == (1, "http_not_scripted")
    assert URL in ran.error["message"] and "POST https://api.example.com/*" in ran.error["message"]


async def test_a_block_of_users_asks_it_too() -> None:
    @weft.block(type="price", effect="read")
    async def price(what: str, ctx: weft.StepContext) -> Any:
        return (await ctx.http.get(f"https://api.example.com/{what}")).json()

    assert (await run_block(price, {"what": "tea"}, http=ScriptedHttp({"GET */tea": 3}))).output == 3


async def test_a_secret_goes_to_its_host_alone() -> None:
    http = ScriptedHttp({"GET *": 3})
    given: dict[str, Any] = {"env": {"KEY": "k-123456"}, "secrets": {"KEY": ["api.example.com"]}, "http": http}
    params = {"url": URL, "headers": {"X-Key": "${KEY}"}}
    assert (await run_block("http", params, **given)).status == "succeeded"
    assert http.requests[0].headers["x-key"] == "k-123456"
    refused = await run_block("http", {**params, "url": "https://evil.example.com/"}, **given)
    assert refused.error is not None and refused.error["code"] == "secret_host_refused"
    assert len(http.requests) == 1


@pytest.mark.parametrize("request_", ["https://example.com", "GET", "FETCH https://example.com"])
def test_a_request_without_a_method_or_url_is_refused(request_: str) -> None:
    with pytest.raises(ValueError, match="needs a method"):
        ScriptedHttp().on(request_, {})
