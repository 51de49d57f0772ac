"""Public chat pages over HTTP: one run for each message, what visitors hear of it, and what they do not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from executor.service.topics import chats
from executor.service.topics.chats import new_conversation
from server.http.rates import ANSWERS

Json = dict[str, Any]
TALK = "0123456789abcdefABCD_-"


def shop(then: Json | None = None, **params: Any) -> Json:
    """`then`: the block that the chat leads to."""
    answer = {
        "type": "response",
        "params": {"body": "You said <chat.message>, number <chat.turn> of <chat.conversation>"},
    }
    return {
        "format": "weft/1",
        "name": "shop",
        "blocks": {
            "chat": {"type": "chat_trigger", "name": "Chat", "params": {"title": "The <b>shop</b>", **params}},
            "then": then or answer,
        },
        "edges": [{"source": "chat", "target": "then"}],
    }


async def store(client: httpx.AsyncClient, document: Json) -> str:
    """Store it; returns the path of the page."""
    saved = await client.post("/api/workflows", json=document)
    assert saved.status_code == 201, saved.text
    view = (await client.get("/api/webhooks/chat:shop:chat")).json()
    assert view["kind"] == "chat"
    return str(urlsplit(view["url"]).path)


async def say(client: httpx.AsyncClient, place: str, message: str, n: int) -> httpx.Response:
    headers = {"accept": "application/json"}
    return await client.post(place, data={"message": message, "n": str(n)}, headers=headers)


def known_as(page: str, conversation: str) -> str:
    digest = hashlib.sha256(f"{page}\0{conversation}".encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def turns(client: httpx.AsyncClient, place: str, until: str | None = None) -> list[Json]:
    async with asyncio.timeout(30):
        while True:
            found: list[Json] = (await client.get(place, headers={"accept": "application/json"})).json()["turns"]
            if until is None or (found and found[-1]["state"] == until):
                return found
            await asyncio.sleep(0.01)


async def heard(client: httpx.AsyncClient, address: str) -> list[tuple[str, Json]]:
    response = await client.get(address)
    assert response.status_code == 200, response.text
    frames = re.findall(r"event: (\S+)\ndata: (.*)\n", response.text)
    return [(event, orjson.loads(data)) for event, data in frames]


async def test_a_conversation(client: httpx.AsyncClient) -> None:
    path = await store(client, shop(text="Ask us."))
    begun = await client.get(path)
    assert begun.status_code == 303 and re.fullmatch(re.escape(path) + r"/[\w-]{24}", begun.headers["location"])
    place = begun.headers["location"]
    page = await client.get(place)
    assert page.status_code == 200 and "The &lt;b&gt;shop&lt;/b&gt;" in page.text and "Ask us." in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"] and "unsafe" not in str(page.headers)
    talk = known_as("chat:shop:chat", place.rpartition("/")[2])
    for n, message in enumerate(("Hi", "<i>Bye</i>"), 1):
        assert (await say(client, place, message, n)).json() == {"n": n}
        await turns(client, place, "answered")
    found = await turns(client, place)
    assert 0 < found[0].pop("at_ms") <= found[1].pop("at_ms")
    same = {"state": "answered", "questions": [], "tools": []}
    assert found == [
        {"n": 1, "message": "Hi", "answer": f"You said Hi, number 1 of {talk}", **same},
        {"n": 2, "message": "<i>Bye</i>", "answer": f"You said <i>Bye</i>, number 2 of {talk}", **same},
    ]
    page = await client.get(place)
    assert "&lt;i&gt;Bye&lt;/i&gt;" in page.text and "<i>" not in page.text and 'value="3"' in page.text
    assert await heard(client, f"{place}/2/events") == [("end", {})]
    assert (await client.get(f"{path}/{TALK}", headers={"accept": "application/json"})).json() == {"turns": []}


async def test_a_visitor_does_not_choose_what_runs_know_a_conversation_by(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop())}/customer-account-0042"
    assert (await say(client, place, "Hi", 1)).status_code == 202
    [turn] = await turns(client, place, "answered")
    name = turn["answer"].rpartition(" ")[2]
    assert name != "customer-account-0042" and "customer" not in name
    assert (await say(client, place, "Hi", 2)).status_code == 202
    assert (await turns(client, place, "answered"))[1]["answer"].endswith(f"number 2 of {name}"), "it stays the same"


async def test_a_conversation_that_began_under_its_own_id_keeps_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await store(client, shop())
    for id, stays in ((new_conversation(), True), ("customer-account-0042", False)):
        monkeypatch.setattr(chats, "_name_in_runs", lambda row, conversation, last: conversation)  # as it was once
        await say(client, f"{path}/{id}", "Hi", 1)
        await turns(client, f"{path}/{id}", "answered")
        monkeypatch.undo()
        await say(client, f"{path}/{id}", "Hi", 2)
        answer = (await turns(client, f"{path}/{id}", "answered"))[1]["answer"]
        assert answer.endswith(f" of {id}") == stays


async def test_a_browser_without_scripts_posts_the_form(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop())}/{TALK}"
    sent = await client.post(place, data={"message": "Hi\r\nthere", "n": "1"}, headers={"origin": "null"})
    assert sent.status_code == 303 and sent.headers["location"] == place
    assert (await turns(client, place, "answered"))[0]["message"] == "Hi\nthere"
    long = await client.post(place, data={"message": "x" * 8_001, "n": "2"})
    assert long.status_code == 422 and "at most 8,000 characters" in long.text and "x" * 8_001 in long.text


async def test_a_message_starts_one_run(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop())}/{TALK}"
    sent = await asyncio.gather(*(say(client, place, "Hi", 1) for _ in range(5)))
    assert {one.status_code for one in sent} == {202}
    await turns(client, place, "answered")
    assert (await say(client, place, "Hi", 1)).status_code == 202
    assert len((await client.get("/api/runs", params={"workflow": "shop"})).json()["runs"]) == 1
    other = await say(client, place, "Something else", 1)
    assert (other.status_code, other.json()["code"]) == (409, "chat_changed")
    for n in (3, 0, 999_999):
        assert (await say(client, place, "Hi", n)).status_code in (409, 422), n
    page = await client.post(place, data={"message": "Something else", "n": "1"})
    assert page.status_code == 409 and "Something else" in page.text and "other messages now" in page.text


async def test_the_next_message_waits_for_the_answer(client: httpx.AsyncClient) -> None:
    ask = {"type": "approval", "params": {"title": "May it?"}}
    place = f"{await store(client, shop(ask))}/{TALK}"
    await say(client, place, "Hi", 1)
    [turn] = await turns(client, place, "waiting")
    assert turn.get("answer") is None
    busy = await say(client, place, "More", 2)
    assert (busy.status_code, busy.json()["code"]) == (409, "chat_busy")
    page = await client.get(place)
    assert "A person has to agree" in page.text and "Load the page again" in page.text and "May it" not in page.text
    hearing = asyncio.create_task(heard(client, f"{place}/1/events"))
    [wait] = (await client.get("/api/waits")).json()["waits"]
    await client.post(wait["link"], json={"action": "approve"}, headers={"accept": "application/json"})
    events = [event for event, _ in await hearing]
    assert events == ["waiting", "working", "end"]


PAY_BACK: Json = {
    "type": "approval",
    "params": {
        "title": "Pay <b>20 EUR</b> back?",
        "show": {"card": "4421"},
        "fields": {"type": "object", "properties": {"days": {"type": "integer", "maximum": 3}}},
        "outcomes": {"approve": "It arrives in two days."},
        "by": ["chat"],
    },
}


async def test_the_visitor_answers_a_question_in_the_chat(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop(PAY_BACK))}/{TALK}"
    await say(client, place, "Hi", 1)
    [turn] = await turns(client, place, "waiting")
    [question] = turn["questions"]
    assert (question["status"], question["actions"]) == ("pending", ["approve", "reject"])
    page = (await client.get(place)).text
    for shown in (
        "Pay &lt;b&gt;20 EUR&lt;/b&gt; back?",
        "4421",
        "It arrives in two days.",
        f'action="{place}/1/answer"',
    ):
        assert shown in page
    assert "A person has to agree" not in page, "it is this person"
    headers = {"accept": "application/json"}
    answer = {"wait": question["wait"], "action": "approve", "field.days": "2"}
    wrong = await client.post(f"{place}/1/answer", data={**answer, "field.days": "9"})
    assert wrong.status_code == 422 and "maximum" in wrong.text and 'action="approve"' not in wrong.text
    for other, data in ((f"{place}x/1", answer), (f"{place}/2", answer), (f"{place}/1", {**answer, "wait": "then!9"})):
        assert (await client.post(f"{other}/answer", data=data, headers=headers)).status_code == 404
    sent = await client.post(f"{place}/1/answer", data=answer)
    assert sent.status_code == 303 and sent.headers["location"] == place
    [turn] = await turns(client, place, "answered")
    assert [(one["status"], one["action"]) for one in turn["questions"]] == [("answered", "approve")]
    folded = (await client.get(place)).text
    assert "<b> Approve</b>" in folded and "Needs your answer" not in folded
    late = await client.post(f"{place}/1/answer", data=answer, headers=headers)
    assert late.status_code == 409
    [wait] = (await client.get("/api/waits?status=answered")).json()["waits"]
    assert (wait["answered_by"], wait["response"]) == ("chat", {"days": 2, "action": "approve"})


async def test_a_question_for_the_visitor_is_for_no_one_else(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop(PAY_BACK))}/{TALK}"
    await say(client, place, "Hi", 1)
    await turns(client, place, "waiting")
    [wait] = (await client.get("/api/waits")).json()["waits"]
    by_link = await client.post(wait["link"], json={"action": "approve"}, headers={"accept": "application/json"})
    assert (by_link.status_code, by_link.json()["code"]) in ((401, "sign_in_required"), (403, "not_yours"))
    assert (await turns(client, place))[0]["state"] == "waiting"


async def test_an_answer_can_be_stopped(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop({'type': 'approval', 'params': {'title': 'May it?'}}))}/{TALK}"
    await say(client, place, "Hi", 1)
    await turns(client, place, "waiting")
    across = await client.post(f"{place}/1/stop", data={"n": "1"}, headers={"sec-fetch-site": "cross-site"})
    assert across.status_code == 403
    assert (await client.post(f"{place}/1/stop")).status_code == 415
    assert (await client.post(f"{place}/1/stop", data={"n": "1"})).status_code == 202
    [turn] = await turns(client, place, "stopped")
    assert turn["answer"] is None and "This answer was stopped" in (await client.get(place)).text
    assert (await say(client, place, "More", 2)).status_code == 202


async def test_a_failure_says_nothing_of_the_run(client: httpx.AsyncClient) -> None:
    fail = {"type": "function", "params": {"code": "throw new Error('secret things')"}}
    place = f"{await store(client, shop(fail))}/{TALK}"
    await say(client, place, "Hi", 1)
    await turns(client, place, "failed")
    page = await client.get(place)
    assert "There is no answer to this message" in page.text
    for seen in (page.text, (await client.get(f"{place}/1/events")).text, str(await turns(client, place))):
        assert "secret things" not in seen and "then" not in re.findall(r'"(\w+)"', seen)
    assert (await say(client, place, "Again", 2)).status_code == 202


async def test_only_the_address_opens_it(client: httpx.AsyncClient) -> None:
    path = await store(client, shop())
    name, token = path.split("/")[2:]
    place = f"{path}/{TALK}"
    await say(client, place, "Hi", 1)
    await turns(client, place, "answered")
    for wrong in (
        f"/chat/{name}/{token[:-1]}x/{TALK}",
        f"/chat/shop:then/{token}/{TALK}",
        f"/forms/{name}/{token}",
        f"{path}/short",
        f"{place}/2/events",
        f"{place}/x/events",
        f"{path}/{TALK[::-1]}/1/events",
    ):
        assert (await client.get(wrong)).status_code == 404, wrong
    assert (await client.post("/hooks/chat:shop:chat", json={})).status_code == 404
    await client.post("/api/webhooks/chat:shop:chat/rotate")
    assert (await client.get(place)).status_code == 404
    assert (await client.get(f"{place}/1/events")).status_code == 404


async def test_a_closed_chat_takes_no_messages(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop())}/{TALK}"
    await client.post("/api/webhooks/chat:shop:chat/disable")
    assert (await client.get(place)).status_code == 410
    assert (await say(client, place, "Hi", 1)).status_code == 410
    assert (await client.get("/api/runs", params={"workflow": "shop"})).json()["runs"] == []


async def test_many_messages_are_refused(client: httpx.AsyncClient) -> None:
    place = f"{await store(client, shop())}/{TALK}"
    statuses = [(await say(client, place, "Hi", 1)).status_code for _ in range(ANSWERS + 2)]
    assert statuses[0] == 202 and statuses[-1] == 429
