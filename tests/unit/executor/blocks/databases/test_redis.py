"""Commands on a real Valkey server, reached through a port of loopback."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trustme

from executor.blocks.databases.commands import Command, only_reads, refusal, waits_s
from executor.blocks.databases.databases import Databases
from executor.blocks.databases.rows import Login
from executor.blocks.http.binding import Rules, bound_to
from executor.blocks.http.client import GuardedClient
from executor.errors import BlockError, Lost
from tests.support.lossy import in_front_of
from tests.support.valkey import PASSWORD, valkey

HOST = "cache.example"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with valkey() as started:
        yield started


@pytest.fixture
async def place(port: int) -> str:
    await ask(address_of(port), "FLUSHALL")
    return address_of(port)


def address_of(port: int, more: str = "", user: str = "", scheme: str = "redis") -> str:
    return f"{scheme}://{user}:{quote(PASSWORD, safe='')}@{HOST}:{port}{more}"


async def resolve(host: str, port: int) -> Sequence[str]:
    assert host == HOST
    return ["127.0.0.1"]


async def ask(place: str, name: str, *arguments: str, **more: Any) -> Any:
    databases = Databases(GuardedClient(more.pop("allowed", ["127.0.0.1"]), resolve=resolve))
    return await databases.command(
        place, Command(name, arguments, more.pop("timeout_s", 30)), login=more.pop("login", None)
    )


async def refused(place: str, name: str, *arguments: str, **more: Any) -> BlockError:
    with pytest.raises(BlockError) as caught:
        await ask(place, name, *arguments, **more)
    assert PASSWORD not in caught.value.message and "ada" not in caught.value.message
    return caught.value


async def test_answers_are_json(place: str) -> None:
    assert await ask(place, "SET", "text", 'tä" \r\n*3\r\n') == "OK"
    assert await ask(place, "GET", "text") == 'tä" \r\n*3\r\n'
    assert await ask(place, "GET", "none") is None
    assert await ask(place, "INCRBY", "n", "9007199254740991") == 9007199254740991
    assert await ask(place, "INCR", "n") == "9007199254740992"
    assert await ask(place, "HSET", "h", "a", "1", "b c", "2") == 2
    assert await ask(place, "HGETALL", "h") == {"a": "1", "b c": "2"}
    assert await ask(place, "SADD", "s", "x") == 1 and await ask(place, "SMEMBERS", "s") == ["x"]
    assert await ask(place, "ZADD", "z", "1.5", "x") == 1 and await ask(place, "ZSCORE", "z", "x") == 1.5
    assert await ask(place, "RPUSH", "l", "a", "", "c") == 3 and await ask(place, "LRANGE", "l", "0", "-1") == [
        "a",
        "",
        "c",
    ]
    assert await ask(place, "EVAL", "return {1, {'a', false}, redis.error_reply('X no')}", "0") == [
        1,
        ["a", None],
        "X no",
    ]
    assert await ask(place, "DUMP", "none") is None
    assert await ask(place, "SETBIT", "bits", "0", "1") == 0 and await ask(place, "GET", "bits") == "gA=="
    assert "valkey_version:" in await ask(place, "INFO", "server")
    assert await ask(place, "XADD", "x", "1-1", "k", "v") == "1-1"
    assert await ask(place, "XRANGE", "x", "-", "+") == [["1-1", ["k", "v"]]]


async def test_the_path_is_the_number_of_the_database(port: int, place: str) -> None:
    await ask(address_of(port, "/3"), "SET", "k", "three")
    assert await ask(place, "GET", "k") is None
    assert await ask(address_of(port, "/3"), "GET", "k") == "three"
    assert "out of range" in (await refused(address_of(port, "/99"), "GET", "k")).message


async def test_the_table_agrees_with_the_flags_of_the_server(place: str) -> None:
    reading_without_flag = {
        "CLUSTER", "COMMAND", "ECHO", "FUNCTION", "INFO", "LASTSAVE", "MEMORY", "PING", "PUBSUB", "ROLE", "SCRIPT",
        "TIME",
    }  # fmt: skip
    known: dict[str, Any] = {}
    for name, _, flags, *_, inner in await ask(place, "COMMAND"):
        known |= {name: flags} | {one[0].replace("|", " "): one[2] for one in inner}
    assert len(known) > 350
    for name, flags in known.items():
        if "readonly" in flags:
            assert only_reads(name), name
        elif only_reads(name):
            assert name.split()[0].upper() in reading_without_flag and not {"write", "admin"} & {*flags}, name
        if {"admin", "no_multi", "no_auth"} & {*flags} and not name.endswith(" help"):
            assert refusal(name) is not None, name
        if "blocking" in flags and refusal(name) is None:
            assert waits_s(Command(name.upper(), ["k", "0", "1", "LEFT", "BLOCK"])) is not None, name


async def test_a_command_that_waits_has_an_end(place: str) -> None:
    assert await ask(place, "BLPOP", "queue", "0.1") is None
    await ask(place, "RPUSH", "queue", "a")
    assert await ask(place, "BLPOP", "queue", "1") == ["queue", "a"]
    for name, arguments, seconds in (
        ("BLPOP", ["a", "2"], 2), ("BLPOP", ["a", "0"], float("inf")), ("BLPOP", ["a"], float("inf")),
        ("BLPOP", [], float("inf")),
        ("BLMPOP", ["0.5", "1", "a", "LEFT"], 0.5), ("XREAD", ["STREAMS", "block", "0"], None), ("LPOP", ["a"], None),
        ("XREAD", ["COUNT", "1", "block", "250", "STREAMS", "a", "$"], 0.25), ("XREAD", ["BLOCK"], float("inf")),
    ):  # fmt: skip
        assert waits_s(Command(name, arguments)) == seconds, (name, arguments)


async def test_errors(port: int, place: str) -> None:
    await ask(place, "SET", "a", "x")
    error = await refused(place, "LPUSH", "a", "y")
    assert (error.code, error.retryable) == ("redis_failed", False)
    assert error.message.startswith(f"{HOST}:{port} refused LPUSH: WRONGTYPE Operation")
    assert (await refused(place, "NOSUCH", "a")).code == "redis_failed"
    ada = address_of(port, user="ada")
    assert await ask(ada, "GET", "a") == "x"
    for error in (await refused(ada, "SET", "a", "y"), await refused(ada, "GET", "b")):
        assert (error.code, error.retryable) == ("redis_failed", False) and "no right" in error.message
    for wrong in (place.replace("p%40", "x"), f"redis://{HOST}:{port}", ada.replace("ada", "eve")):
        assert (await refused(wrong, "GET", "a")).code == "redis_login"
    assert (await refused(address_of(1), "GET", "a")).code == "redis_connection"
    assert (await refused(place, "GET", "a", allowed=["10.0.0.0/8"])).code == "address_refused"
    with bound_to({"CACHE": Rules(["other.example"])}):
        assert (await refused(place, "GET", "a")).code == "secret_host_refused"
    bare = f"redis://{HOST}:{port}/0"
    assert await ask(bare, "GET", "a", login=Login(None, PASSWORD)) == "x"
    assert await ask(bare, "GET", "a", login=Login("ada", PASSWORD)) == "x"


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (b"-LOADING it reads its file", "redis_busy", True), (b"-BUSY a script runs", "redis_busy", True),
        (b"-TRYAGAIN later", "redis_busy", True), (b"-CLUSTERDOWN no", "redis_busy", True),
        (b"-MOVED 3999 10.0.0.9:6381", "redis_failed", False), (b"-ASK 3999 10.0.0.9:6381", "redis_failed", False),
        (b"-NOAUTH no", "redis_login", False), (b"-OOM too much", "redis_failed", False),
    ],
)  # fmt: skip
async def test_what_an_answer_means(answer: bytes, code: str, retryable: bool) -> None:
    async with answering(answer + b"\r\n") as port:
        error = await refused(address_of(port), "SET", "a", "x")
        assert (error.code, error.retryable) == (code, retryable)
        assert "10.0.0.9" not in error.message


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[int]:
    """A port that answers a greeting, and then a command with these bytes; without any it does not answer."""
    stopped = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1 << 16)
        writer.write(b"%1\r\n$5\r\nproto\r\n:3\r\n")
        await reader.read(1 << 16)
        writer.writelines(answers)
        if not answers:
            await stopped.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        stopped.set()
        server.close()


@pytest.mark.parametrize(
    "answer",
    [b"$9\r\nhal", b"?\r\n", b":x\r\n", b"$x\r\n", b"*1\r\n" * 5000, b"%1\r\n*0\r\n:1\r\n"],
    ids=["cut", "unknown", "number", "length", "deep", "key"],
)
async def test_an_answer_that_is_none(answer: bytes) -> None:
    async with answering(answer) as port:
        error = await refused(address_of(port), "GET", "a")
        assert (error.code, error.retryable) == ("redis_connection", True)
        with pytest.raises(Lost, match=r"SET was interrupted at .*: it may have changed something"):
            await ask(address_of(port), "SET", "a", "x")


async def test_a_server_that_does_not_answer() -> None:
    async with answering() as port:
        error = await refused(address_of(port), "GET", "a", timeout_s=0.2)
        assert (error.code, error.retryable) == ("redis_timeout", False)
        with pytest.raises(Lost):
            await ask(address_of(port), "SET", "a", "x", timeout_s=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = await refused(address_of(silent.getsockname()[1]), "SET", "a", "x", timeout_s=0.2)
    assert (error.code, error.retryable) == ("redis_connection", True) and "within 0.2 s" in error.message


async def test_a_lost_change_is_unknown_and_a_lost_read_is_not(port: int, place: str) -> None:
    async with in_front_of(port, lambda data: b"INCR" in data or b"GET" in data) as lossy:
        with pytest.raises(Lost, match="INCR was interrupted"):
            await ask(address_of(lossy), "INCR", "n")
        error = await refused(address_of(lossy), "GET", "n")
        assert (error.code, error.retryable) == ("redis_connection", True)
    assert await ask(place, "GET", "n") == "1"


async def test_a_cancelled_command_leaves_no_connection(place: str) -> None:
    async def until(count: int) -> None:
        async with asyncio.timeout(30):
            while f"blocked_clients:{count}" not in await ask(place, "INFO", "clients"):
                await asyncio.sleep(0.01)

    running = asyncio.create_task(ask(place, "BLPOP", "queue", "60"))
    await until(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(0)


async def test_an_answer_that_is_too_large(place: str) -> None:
    await ask(place, "SETRANGE", "large", str(6 * 1024 * 1024), "x")
    error = await refused(place, "GET", "large")
    assert (error.code, error.retryable) == ("redis_too_large", False)
    assert "executed" not in error.message
    assert (await refused(place, "GETDEL", "large")).message.endswith("; GETDEL was executed")
    assert await ask(place, "EXISTS", "large") == 0
    await ask(place, "EVAL", "for i = 1, 1000 do redis.call('RPUSH', 'many', string.rep('x', 5000)) end", "0")
    assert (await refused(place, "LRANGE", "many", "0", "-1")).code == "redis_too_large"


async def test_tls(port: int, tmp_path: Path) -> None:
    authority, ca = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    async with in_front_of(port, secured=context) as secured:
        assert await ask(address_of(secured, f"?ssl_ca_certs={ca}", scheme="rediss"), "PING") == "PONG"
        assert await ask(address_of(secured, "/1?ssl_cert_reqs=none", scheme="rediss"), "PING") == "PONG"
        error = await refused(address_of(secured, scheme="rediss"), "PING")
        assert error.code == "redis_connection" and "TLS failed (CERTIFICATE_VERIFY_FAILED)" in error.message
        elsewhere = address_of(secured, f"?ssl_ca_certs={ca}", scheme="rediss").replace(HOST, "127.0.0.1")
        with pytest.raises(BlockError, match="TLS failed"):
            await Databases(GuardedClient(["127.0.0.1"])).command(elsewhere, Command("PING"))
        files = await refused(
            address_of(secured, f"?ssl_ca_certs={ca}", scheme="rediss"), "PING", login=Login(None, PASSWORD)
        )
        assert "only ssl_cert_reqs may follow its ?" in files.message


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u@cache.example/0", "redis:///0", "redis://%2Ftmp%2Fs/0", "redis://a.example,b.example/0",
        "redis://u:secret@cache.example:x/0", "redis://u:secret@cache.example/name", "redis://u:secret@cache.example/-1",
        "redis://u:a?secret@cache.example/0", "redis://cache.example/0?ssl_cert_reqs=none",
        "rediss://cache.example/0?ssl_ca_certs=/no/such/file", "rediss://cache.example/0?ssl_cert_reqs=some", "unix:///tmp/redis.sock",
    ],
)  # fmt: skip
async def test_addresses_that_lead_elsewhere_are_refused(address: str) -> None:
    error = await refused(address, "PING")
    assert error.code == "params_invalid"
    assert "secret" not in error.message
