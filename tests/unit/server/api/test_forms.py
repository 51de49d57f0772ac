"""Public forms over HTTP: the page, what is wrong at its field, one run for each page that was loaded."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from server.http.rates import ANSWERS

API = "/api/webhooks/form:orders:intake"
FORM = {"content-type": "application/x-www-form-urlencoded"}
FIELDS = {
    "properties": {
        "email": {"type": "string", "format": "email", "title": "Your email"},
        "count": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many"},
        "size": {"enum": ["S", "M"], "default": "M"},
        "gift": {"type": "boolean", "title": "A gift"},
    },
    "required": ["email", "count"],
}
Json = dict[str, Any]


def orders(after: Json | None = None, **params: Any) -> Json:
    """`after`: the block that the form leads to."""
    return {
        "format": "weft/1",
        "name": "orders",
        "blocks": {
            "intake": {"type": "form_trigger", "params": {"title": "Order <b>tea</b>", "fields": FIELDS, **params}},
            "then": after or {"type": "set", "params": {"value": "<intake.count>"}},
        },
        "edges": [{"source": "intake", "target": "then"}],
    }


ANSWER = {"type": "response", "params": {"body": {"ordered": "<intake.count>"}}}


async def store(client: httpx.AsyncClient, document: Json) -> str:
    """Store it; returns the path of the page."""
    saved = await client.post("/api/workflows", json=document)
    assert saved.status_code == 201, saved.text
    return str(urlsplit((await client.get(API)).json()["url"]).path)


def once_of(page: str) -> str:
    found = re.search(r'name="once" value="([A-Za-z0-9_-]+)"', page)
    assert found, page
    return found[1]


async def fill(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    page = await client.get(path)
    assert page.status_code == 200, page.text
    return await client.post(path, data={"once": once_of(page.text), **{f"field.{k}": v for k, v in fields.items()}})


async def runs_of(client: httpx.AsyncClient) -> list[Json]:
    return (await client.get("/api/runs")).json()["runs"]  # type: ignore[no-any-return]  # JSON of a test


async def test_the_page_has_the_form_and_starts_nothing(client: httpx.AsyncClient) -> None:
    path = await store(client, orders(text="For <you>", submit="Order now"))
    page = await client.get(path)
    assert page.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    for text in (
        "Order &lt;b&gt;tea&lt;/b&gt;",
        "For &lt;you&gt;",
        "Your email",
        'type="email"',
        "How many",
        "Order now",
    ):
        assert text in page.text
    assert once_of(page.text) != once_of((await client.get(path)).text)
    assert await runs_of(client) == []


async def test_a_submission_shows_the_response_of_its_run(client: httpx.AsyncClient) -> None:
    path = await store(client, orders(ANSWER, done="We send it <tomorrow>.", wait_s=30))
    done = await fill(client, path, email="ada@example.org", count="3", gift="true")
    assert done.status_code == 200, done.text
    assert "ordered" in done.text and "<code>3</code>" in done.text and "We send it &lt;tomorrow&gt;." in done.text
    (run,) = await runs_of(client)
    shown = (await client.get(f"/api/runs/{run['id']}")).json()
    assert shown["input"] == {"email": "ada@example.org", "count": 3, "gift": True, "size": "M"}


async def test_what_is_wrong_stands_at_its_field_and_what_was_typed_is_kept(client: httpx.AsyncClient) -> None:
    path = await store(client, orders())
    wrong = await fill(client, path, email="<ada>", count="nine")
    assert wrong.status_code == 422
    assert "Enter a whole number." in wrong.text and "&lt;ada&gt;" in wrong.text
    missing = await fill(client, path, count="2")
    assert "Enter a value." in missing.text
    large = await fill(client, path, email="ada@example.org", count="9")
    assert large.status_code == 422 and "9 is greater than the maximum of 5" in large.text
    assert 'id="field.count.note" class="error"' in large.text
    assert await runs_of(client) == []


async def test_a_page_that_is_sent_twice_starts_one_run(client: httpx.AsyncClient) -> None:
    path = await store(client, orders(wait_s=0))
    once = once_of((await client.get(path)).text)
    sent = {"once": once, "field.email": "a@example.org", "field.count": "1"}
    first = await client.post(path, data=sent)
    again = await client.post(path, data={**sent, "field.count": "2"})
    assert first.status_code in (200, 202) and again.status_code in (200, 202)
    assert "Your submission was received." in again.text
    assert len(await runs_of(client)) == 1
    for bad in ("", "x", "a" * 65, "a b c d e f"):
        refused = await client.post(path, data={**sent, "once": bad})
        assert (refused.status_code, refused.json()["code"]) == (400, "delivery_invalid")


async def test_the_address_is_replaced_and_switched_off(client: httpx.AsyncClient) -> None:
    path = await store(client, orders())
    assert (await client.post(f"{API}/disable")).json()["enabled"] is False
    assert (await client.get(path)).status_code == 410
    assert (await client.post(path, data={"once": "12345678"})).status_code == 410
    await client.post(f"{API}/enable")
    assert (await client.get(path)).status_code == 200
    token = (await client.post(f"{API}/rotate")).json()["secret"]
    assert (await client.get(path)).status_code == 404
    new = urlsplit((await client.get(API)).json()["url"]).path
    assert new.endswith(f"/{token}") and (await client.get(new)).status_code == 200
    # A new version keeps the address.
    await client.post("/api/workflows", json=orders(text="Changed"))
    assert "Changed" in (await client.get(new)).text


async def test_wrong_addresses_are_unknown_and_counted(client: httpx.AsyncClient) -> None:
    path = await store(client, orders())
    name, token = path.split("/")[2:]
    for other in (
        f"/forms/{name}/{token[:-1]}",
        f"/forms/{name}/{token}x",
        f"/forms/orders:then/{token}",
        "/forms/a/b",
    ):
        unknown = await client.get(other)
        assert (unknown.status_code, unknown.headers["content-type"][:9]) == (404, "text/html")
    assert 429 in [(await client.get("/forms/a/b")).status_code for _ in range(40)]
    assert (await client.get(path)).status_code == 200


async def test_a_form_is_no_webhook_and_its_view_says_so(client: httpx.AsyncClient) -> None:
    path = await store(client, orders())
    token = path.rsplit("/", 1)[1]
    sent = await client.post("/hooks/form:orders:intake", json={}, headers={"authorization": f"Bearer {token}"})
    assert (sent.status_code, sent.json()["code"]) == (404, "webhook_not_found")
    (view,) = (await client.get("/api/webhooks")).json()["webhooks"]
    assert (view["id"], view["kind"], view["trigger"]) == ("form:orders:intake", "form", "intake")
    assert (await client.get(API)).json()["secret"] is None


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:9999"])
async def test_other_sites_cannot_submit(client: httpx.AsyncClient, origin: str) -> None:
    path = await store(client, orders())
    sent = {"once": "12345678", "field.email": "a@example.org", "field.count": "1"}
    for headers in ({"origin": origin}, {"sec-fetch-site": "cross-site"}):
        assert (await client.post(path, data=sent, headers=headers)).status_code == 403
    assert (await client.post(path, json={})).status_code == 415
    assert await runs_of(client) == []
    assert (await client.post(path, data=sent, headers={"origin": "null"})).status_code in (200, 202)


async def test_sizes_and_rates_are_bounded(client: httpx.AsyncClient) -> None:
    path = await store(client, orders())
    large = await client.post(path, content=b"x=" + b"y" * 300_000, headers=FORM)
    assert large.status_code == 413
    many = await client.post(path, content="&".join(f"a{n}=1" for n in range(1_001)).encode(), headers=FORM)
    assert many.status_code == 422
    answers = [(await client.post(path, data={"once": "12345678"})).status_code for _ in range(ANSWERS + 10)]
    assert answers[-1] == 429 and 422 in answers


async def test_the_fields_of_the_input_without_own_fields(client: httpx.AsyncClient) -> None:
    document = orders(fields={})
    document["input"] = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    document["blocks"]["then"]["params"] = {"value": "<intake.who>"}
    document["blocks"]["start"] = {"type": "start"}
    path = await store(client, document)
    assert "field.who" in (await client.get(path)).text
    assert (await fill(client, path)).status_code == 422
    assert (await fill(client, path, who="Ada")).status_code in (200, 202)


async def test_a_run_that_fails_shows_no_inside(client: httpx.AsyncClient) -> None:
    failing = {"type": "function", "params": {"code": "throw new Error('secret inside')"}}
    path = await store(client, orders(failing, wait_s=30))
    done = await fill(client, path, email="a@example.org", count="1")
    assert done.status_code == 200 and "it was not processed" in done.text
    assert "secret inside" not in done.text
