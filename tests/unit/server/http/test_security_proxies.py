"""What reverse proxies say counts on connections from them, and from nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack

import httpx
import pytest
from msgspec.structs import replace
from starlette.types import Scope

from executor.open.engine import Engine
from server.app import create_app
from server.http.rates import LOGINS
from server.http.security import Proxies, forwarded_hosts
from server.settings import Settings

PROXY, CLIENT = "10.0.3.1", "203.0.113.7"
HSTS = "strict-transport-security"
Reach = Callable[[str], httpx.AsyncClient]


def asked(peer: str, headers: Iterable[tuple[str, str]] = ()) -> Scope:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "client": (peer, 40_000), "scheme": "http", "headers": raw}


@pytest.mark.parametrize(
    ("sent", "client"),
    [
        ([], PROXY),
        ([CLIENT], CLIENT),
        (["198.51.100.1, " + CLIENT], CLIENT),  # the first was written by the client
        (["198.51.100.1", CLIENT], CLIENT),  # in a line of its own
        ([f"{CLIENT}, 10.0.3.2"], CLIENT),  # through two proxies
        (["127.0.0.1, " + CLIENT], CLIENT),
        ([f"10.0.3.9, {CLIENT}, 10.0.3.2"], CLIENT),  # the name of a proxy does not lead further back
        (["10.0.3.9, 10.0.3.2"], "10.0.3.9"),  # a proxy that asks itself
        ([f"{CLIENT}:1234"], CLIENT),
        (["[2001:db8::1]:1234"], "2001:db8::1"),
        (["2001:db8::1"], "2001:db8::1"),
        (["unknown"], PROXY),
        ([f"{CLIENT}, unknown, 10.0.3.2"], "10.0.3.2"),
        ([f"{CLIENT},"], PROXY),
        (["\xff"], PROXY),
    ],
)
def test_the_last_address_that_is_no_proxy_is_the_client(sent: list[str], client: str) -> None:
    scope = asked(PROXY, [("x-forwarded-for", line) for line in sent])
    assert Proxies(["10.0.3.0/24", "127.0.0.1"]).passed_on(scope)
    assert scope["client"][0] == client


@pytest.mark.parametrize("peer", [CLIENT, "10.0.4.1", "", "2001:db8::1", "a name"])
def test_other_connections_are_who_they_are(peer: str) -> None:
    headers = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-proto", "https"), ("forwarded", "for=198.51.100.1")]
    scope = asked(peer, headers)
    assert not Proxies(["10.0.3.0/24"]).passed_on(scope)
    assert (scope["client"][0], scope["scheme"]) == (peer, "http")


def test_forwarded_is_not_read() -> None:
    scope = asked(PROXY, [("forwarded", "for=198.51.100.1;proto=https;host=evil.test")])
    assert Proxies([PROXY]).passed_on(scope)
    assert (scope["client"][0], scope["scheme"], forwarded_hosts(scope)) == (PROXY, "http", [])


@pytest.mark.parametrize(
    ("sent", "scheme"), [("https", "https"), ("HTTPS", "https"), ("https, http", "http"), ("ftp", "http"), ("", "http")]
)
def test_the_scheme_is_that_of_the_nearest_proxy(sent: str, scheme: str) -> None:
    scope = asked(PROXY, [("x-forwarded-proto", sent)])
    Proxies([PROXY]).passed_on(scope)
    assert scope["scheme"] == scheme


def test_an_ipv4_address_in_ipv6_is_that_address() -> None:
    assert Proxies([PROXY]).has(f"::ffff:{PROXY}")
    assert not Proxies([PROXY]).has(f"::ffff:{CLIENT}")
    assert Proxies(["fe80::1"]).has("fe80::1%eth0")
    assert not Proxies()


@pytest.fixture
async def reach(settings: Settings, engine: Engine) -> AsyncIterator[Reach]:
    """A server behind one proxy, as it is reached from an address."""
    app = create_app(replace(settings, token="the-token", proxies=(PROXY,), public_url="https://weft.example"), engine)
    async with AsyncExitStack() as clients:

        def connect(peer: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(app=app, client=(peer, 40_000))
            client = httpx.AsyncClient(transport=transport, base_url="http://weft.example")
            clients.push_async_exit(client)
            return client

        yield connect


async def test_tries_are_counted_by_the_client_of_the_proxy(reach: Reach) -> None:
    behind = reach(PROXY)

    async def guess(client: httpx.AsyncClient, forwarded: str) -> int:
        headers = {"x-forwarded-for": forwarded}
        return (await client.post("/login", json={"token": "a guess"}, headers=headers)).status_code

    for number in range(LOGINS):  # what the client writes in front changes nothing
        assert await guess(behind, f"198.51.100.{number}, {CLIENT}") == 401
    assert await guess(behind, f"198.51.100.99, {CLIENT}") == 429
    assert await guess(behind, "203.0.113.8") == 401  # another client
    other = reach("192.0.2.1")
    for number in range(LOGINS):
        assert await guess(other, f"198.51.100.{number}") == 401
    assert await guess(other, "198.51.100.99") == 429  # no proxy: the header has no effect


async def test_https_is_remembered_by_the_browser(reach: Reach) -> None:
    https = {"x-forwarded-proto": "https"}
    assert (await reach(PROXY).get("/healthz", headers=https)).headers[HSTS] == "max-age=31536000"
    assert (await reach(PROXY).get("/api/runs", headers=https)).headers[HSTS]  # a refusal
    assert (await reach(PROXY).get("/healthz", headers={**https, "host": "evil.test"})).headers[HSTS]
    assert HSTS not in (await reach(PROXY).get("/healthz")).headers
    assert HSTS not in (await reach(CLIENT).get("/healthz", headers=https)).headers


async def test_the_forwarded_host_must_be_ours_as_well(reach: Reach) -> None:
    async def status(peer: str, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await reach(peer).get("/healthz", headers=named)).status_code

    assert await status(PROXY, x_forwarded_host="weft.example") == 200
    assert await status(PROXY, x_forwarded_host="evil.test") == 421
    assert await status(PROXY, x_forwarded_host="weft.example, evil.test") == 421
    assert await status(PROXY, host="evil.test", x_forwarded_host="weft.example") == 421
    assert await status(CLIENT, x_forwarded_host="evil.test") == 200  # ignored


async def test_links_and_cookies_follow_the_setting_and_no_header(reach: Reach) -> None:
    headers = {"authorization": "Bearer the-token", "x-forwarded-host": "weft.example", "x-forwarded-proto": "http"}
    made = (await reach(PROXY).post("/api/sign-in-links", headers=headers)).json()
    assert made["url"].startswith("https://weft.example/sign-in#")
    signed = await reach(PROXY).post("/login", json={"code": made["url"].partition("#")[2]}, headers=headers)
    cookie = signed.headers["set-cookie"]
    assert cookie.startswith("__Host-weft=") and "Secure" in cookie and "HttpOnly" in cookie
