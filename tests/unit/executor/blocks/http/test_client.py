"""The HTTP client against real servers."""

import asyncio
import gzip
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast

import pytest

from executor.blocks.http import exchanges
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError
from tests.support.endpoints import Request, Server, answer, http


@pytest.fixture
async def client() -> AsyncIterator[GuardedClient]:
    made = GuardedClient(["127.0.0.1/32"])
    yield made
    await made.close()


def _ok(request: Request) -> bytes:
    return answer(200, b"fine")


async def _refusal(client: GuardedClient, url: str) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await client.request("GET", url, timeout_s=60)
    return caught.value


async def test_a_request_and_its_answer(client: GuardedClient) -> None:
    async with http(lambda r: answer(201, b"made", x_a="1", X_A="2", content_type="text/plain")) as server:
        found = await client.request(
            "post", f"{server.url}/a/b?c=d&e#part", headers={"X-Mine": "caf\xe9"}, content=b"hello"
        )
    assert (found.status, found.body, found.headers["x-a"]) == (201, b"made", "1, 2")
    assert found.url == f"{server.url}/a/b?c=d&e"
    assert found.ms >= 0
    (seen,) = server.seen
    assert (seen.method, seen.target, seen.body, seen.headers["x-mine"]) == ("POST", "/a/b?c=d&e", b"hello", "caf\xe9")
    assert seen.headers["host"] == server.place
    assert seen.headers["accept-encoding"] == "gzip, deflate"


async def test_private_addresses_are_refused_in_every_spelling() -> None:
    client = GuardedClient()
    try:
        async with http(_ok) as server:
            port = server.place.split(":")[1]
            for host in (
                "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "0.0.0.0",
                "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "127.0.0.1.", "LOCALHOST",
            ):  # fmt: skip
                error = await _refusal(client, f"http://{host}:{port}/")
                # What the system cannot read as an address is an unknown name; either way nothing is dialled.
                assert error.code in ("address_refused", "http_connection", "url_invalid"), host
            assert (await _refusal(client, f"http://127.0.0.1:{port}/")).code == "address_refused"
            assert not server.seen
        for url in (
            "http://169.254.169.254/latest/meta-data",
            "http://10.0.0.1/",
            "http://[fd00::1]/",
            "http://100.64.0.1/",
        ):
            assert (await _refusal(client, url)).code == "address_refused"
    finally:
        await client.close()


async def test_one_place_is_allowed_and_its_neighbour_is_not() -> None:
    async with http(_ok) as open_, http(_ok) as closed:
        client = GuardedClient([open_.place])
        try:
            assert (await client.request("GET", open_.url)).status == 200
            assert (await _refusal(client, closed.url)).code == "address_refused"
        finally:
            await client.close()


async def test_a_name_that_changes_its_address_does_not_get_through() -> None:
    """DNS rebinding: the first answer is permitted, the second not. Every dial is judged on what it dials."""
    answers = [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]]
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[len(asked) - 1]

    async with http(_ok, "127.0.0.2") as permitted:
        port = int(permitted.place.split(":")[1])
        async with http(_ok, port=port) as private:
            client = GuardedClient(["127.0.0.2/32"], resolve=resolve)
            url = f"http://rebind.test:{port}/"
            try:
                assert (await client.request("GET", url)).status == 200
                assert (await _refusal(client, url)).code == "address_refused"
                assert (await client.request("GET", url)).status == 200, "of two addresses the permitted one"
            finally:
                await client.close()
    assert (asked, len(permitted.seen), private.seen) == (["rebind.test"] * 3, 2, [])


async def test_of_several_addresses_only_permitted_ones_are_dialled(client: GuardedClient) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.1", "::1", "127.0.0.1"]

    async with http(_ok) as server:
        mixed = GuardedClient(["127.0.0.1/32"], resolve=resolve)
        try:
            found = await mixed.request("GET", f"http://many.test:{server.place.split(':')[1]}/")
        finally:
            await mixed.close()
    assert found.body == b"fine"
    assert server.seen[0].headers["host"].startswith("many.test:")


@pytest.mark.parametrize(
    "url", ["", "example.com", "ftp://example.com/", "file:///etc/passwd", "http://", "http://a b/", "http://u:p@example.com/",
            "javascript:1", "http://[::1", "unix:///var/run/docker.sock", "http://xn--a/", "http://xn--/",
            "http://127.0.0.1:0/", "http://127.0.0.1:65536/"],
)  # fmt: skip
async def test_what_is_no_url_is_refused(client: GuardedClient, url: str) -> None:
    error = await _refusal(client, url)
    assert (error.code, error.retryable) == ("url_invalid", False)


async def test_redirects_are_followed_up_to_five(client: GuardedClient) -> None:
    def step(request: Request) -> bytes:
        left = int(request.target.strip("/"))
        return answer(302, location=f"/{left - 1}") if left else answer(200, b"there")

    async with http(step) as server:
        found = await client.request("GET", f"{server.url}/5")
        assert (found.body, found.url, len(server.seen)) == (b"there", f"{server.url}/0", 6)
        assert (await _refusal(client, f"{server.url}/6")).code == "too_many_redirects"
        plain = await client.request("GET", f"{server.url}/1", follow_redirects=False)
        assert plain.status == 302


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [(301, "POST", "GET", b""), (302, "POST", "GET", b""), (303, "PUT", "GET", b""), (302, "PUT", "PUT", b"data"),
     (307, "POST", "POST", b"data"), (308, "PATCH", "PATCH", b"data"), (303, "HEAD", "HEAD", b"")],
)  # fmt: skip
async def test_method_and_body_after_a_redirect(
    client: GuardedClient, status: int, method: str, then: str, body: bytes
) -> None:
    async with http(lambda r: answer(status, location="/b") if r.target == "/a" else answer(200)) as server:
        content = None if method == "HEAD" else b"data"
        await client.request(method, f"{server.url}/a", content=content, headers={"Authorization": "mine"})
    assert (server.seen[1].method, server.seen[1].body) == (then, body)
    assert server.seen[1].headers["authorization"] == "mine"


async def test_another_origin_gets_no_headers_of_the_caller(client: GuardedClient) -> None:
    async with http(_ok) as other, http(lambda r: answer(302, location=f"{other.url}/x")) as first:
        secrets = {"Authorization": "Bearer s", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/plain"}
        found = await client.request("GET", first.url, headers=secrets)
    assert found.body == b"fine"
    assert other.seen[0].headers["accept"] == "text/plain"
    assert not {"authorization", "cookie", "x-api-key"} & other.seen[0].headers.keys()


async def test_another_origin_gets_no_body(client: GuardedClient) -> None:
    async with http(_ok) as other, http(lambda r: answer(307, location=f"{other.url}/x")) as first:
        for method, content in (("POST", b"data"), ("DELETE", None)):
            with pytest.raises(BlockError) as caught:
                await client.request(method, first.url, content=content)
            assert (caught.value.code, caught.value.retryable) == ("redirect_refused", False)
    assert other.seen == []


@pytest.mark.parametrize("location", ["http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]:1/"])
async def test_a_redirect_to_a_private_address_is_refused(client: GuardedClient, location: str) -> None:
    async with http(lambda r: answer(302, location=location)) as server:
        assert (await _refusal(client, server.url)).code == "address_refused"


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://u:p@127.0.0.1/",
                                      "http://xn--a/", "http://127.0.0.1:65616/"])  # fmt: skip
async def test_a_redirect_to_something_else_is_refused(client: GuardedClient, location: str) -> None:
    async with http(lambda r: answer(302, location=location)) as server:
        assert (await _refusal(client, server.url)).code == "redirect_refused"


def _deflate_raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello" * 99, mtime=0)),
        ("x-gzip", gzip.compress(b"hello" * 50, mtime=0) + gzip.compress(b"hello" * 49, mtime=0)),
        ("deflate", zlib.compress(b"hello" * 99)),
        ("deflate", _deflate_raw(b"hello" * 99)),
        ("identity", b"hello" * 99),
    ],
)
async def test_packed_bodies_are_unpacked(client: GuardedClient, encoding: str, packed: bytes) -> None:
    async with http(lambda r: answer(200, packed, content_encoding=encoding)) as server:
        assert (await client.request("GET", server.url)).body == b"hello" * 99


async def test_a_body_at_the_bound_and_one_past_it(client: GuardedClient) -> None:
    async with http(lambda r: answer(200, b"x" * int(r.target[1:]))) as server:
        assert len((await client.request("GET", f"{server.url}/1000", max_bytes=1000)).body) == 1000
        with pytest.raises(BlockError) as caught:
            await client.request("GET", f"{server.url}/1001", max_bytes=1000)
    assert (caught.value.code, caught.value.retryable) == ("response_too_large", False)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, _deflate_raw])
async def test_a_small_packed_body_cannot_become_a_large_one(client: GuardedClient, pack: object) -> None:
    assert callable(pack)
    bomb = pack(b"\0" * (64 << 20))
    assert len(bomb) < 100_000
    encoding = "gzip" if pack is gzip.compress else "deflate"
    async with http(lambda r: answer(200, bomb, content_encoding=encoding)) as server:
        assert (await _refusal(client, server.url)).code == "response_too_large"


async def test_an_endless_body_is_cut_off(client: GuardedClient) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while sent < 1 << 30:
                writer.write(b"x" * 65536)
                sent += 65536
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    listener = await asyncio.start_server(endless, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        assert (await _refusal(client, f"http://127.0.0.1:{port}/")).code == "response_too_large"
    finally:
        listener.close()
        await listener.wait_closed()
    assert sent < 32 << 20


async def test_an_encoding_that_was_not_requested_is_an_error(client: GuardedClient) -> None:
    async with http(lambda r: answer(200, b"x", content_encoding="br")) as server:
        assert (await _refusal(client, server.url)).code == "http_encoding"
    async with http(lambda r: answer(200, b"not gzip", content_encoding="gzip")) as server:
        assert (await _refusal(client, server.url)).code == "http_connection"


async def test_the_time_limit_is_for_everything(client: GuardedClient) -> None:
    async def slow(request: Request) -> bytes:
        await asyncio.sleep(30)
        return answer()

    async with http(slow) as server:
        with pytest.raises(BlockError) as caught:
            await client.request("GET", f"{server.url}/p?secret=1", timeout_s=0.1)
    assert (caught.value.code, caught.value.retryable) == ("http_timeout", True)
    assert "secret" not in caught.value.message


async def test_a_request_waits_for_a_connection_and_its_time_begins_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client = GuardedClient(["127.0.0.1/32"], connections=1)
    waits: list[str] = []

    @contextmanager
    def waiting() -> Iterator[None]:
        waits.append("begun")
        yield
        waits.append("over")

    asked, go_on = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                asked.set()
                await go_on.wait()
                writer.write(answer(200, b"ok", close=False))
        except asyncio.IncompleteReadError:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    first = asyncio.create_task(client.request("GET", url))
    await asked.wait()
    monkeypatch.setattr(exchanges, "_CONNECT_S", 0.0)  # the second takes over the connection of the first
    second = asyncio.create_task(client.request("GET", url, timeout_s=1, waiting=waiting))
    await asyncio.sleep(1.1)
    assert waits == ["begun"]
    go_on.set()
    assert [found.body for found in await asyncio.gather(first, second)] == [b"ok", b"ok"]
    assert waits == ["begun", "over"]
    await client.close()
    await asyncio.sleep(0.05)  # the other end sees it
    listener.close()
    await listener.wait_closed()


@pytest.mark.parametrize("kept", [False, True], ids=["connecting", "on a connection that is there"])
async def test_a_request_that_is_cancelled_at_any_moment_costs_no_connection(kept: bool) -> None:
    served: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(cast(asyncio.Task[Any], asyncio.current_task()))
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer(200, b"ok", close=False))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    client = GuardedClient(["127.0.0.1/32"], connections=1)
    for turns in range(60):
        if not kept:
            await client.close()
        request = asyncio.create_task(client.request("GET", url))
        for _ in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait([request])
        assert (await client.request("GET", url)).body == b"ok", f"after {turns} turns of the loop"
    await client.close()
    _, still_open = await asyncio.wait(served, timeout=30)
    assert not still_open
    listener.close()
    await listener.wait_closed()


async def test_connections_that_fail_are_worth_another_try(client: GuardedClient) -> None:
    async with http(_ok) as server:
        gone = server.url
    assert (await _refusal(client, gone)).code == "http_connection"
    async with http(lambda r: b"") as server:
        error = await _refusal(client, server.url)
        assert (error.code, error.retryable) == ("http_connection", True)
    async with http(lambda r: b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort") as server:
        assert (await _refusal(client, server.url)).code == "http_connection"
    error = await _refusal(client, "http://no-such-name.invalid/")
    assert (error.code, error.retryable) == ("http_connection", True)


async def test_proxies_of_the_environment_are_not_used(client: GuardedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async with http(_ok) as proxy, http(_ok) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        await client.request("GET", server.url)
    assert (len(proxy.seen), len(server.seen)) == (0, 1)


async def test_connections_are_reused(client: GuardedClient) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer(200, b"ok", close=False))
        except asyncio.IncompleteReadError:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    for _ in range(3):
        await client.request("GET", f"http://127.0.0.1:{port}/")
    await client.close()
    listener.close()
    await listener.wait_closed()
    assert connections == 1


def test_a_server_knows_its_url() -> None:
    assert Server("127.0.0.1:1").url == "http://127.0.0.1:1"


_FIRST = """
import asyncio, sys
from executor.errors import BlockError
from executor.blocks.http.client import GuardedClient
from executor.blocks.http.addresses import Own

async def main():
    client = GuardedClient(["127.0.0.1/32"], own=Own("127.0.0.1:8765", ["https://weft.example"]))
    await client.close()
    print("httpx" in sys.modules, "httpcore" in sys.modules)
    found = await asyncio.gather(*(client.request("GET", "nowhere") for _ in range(3)), return_exceptions=True)
    print([error.code for error in found], "httpx" in sys.modules)
    await client.close()

asyncio.run(main())
"""


def test_the_library_is_loaded_with_the_first_request() -> None:
    done = subprocess.run([sys.executable, "-c", _FIRST], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["False False", "['url_invalid', 'url_invalid', 'url_invalid'] True"]


def test_an_exception_that_is_no_address_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="neither a network nor"):
        GuardedClient(["127.0.0.1:99999"])
