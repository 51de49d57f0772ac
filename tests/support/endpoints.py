"""Real servers on 127.0.0.1: HTTP that answers what a test says, and a mail server that keeps what it gets."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


T = TypeVar("T")
Handler = Callable[[Request], bytes | Awaitable[bytes]]


@dataclass
class Server:
    """`place` is host:port; `seen` lists the requests in order."""

    place: str
    seen: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.place}"


def answer(status: int = 200, body: bytes = b"", *, close: bool = True, **headers: str) -> bytes:
    """Header names are written with underscores for dashes."""
    lines = [f"HTTP/1.1 {status} Status", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["connection: close"] if close else []
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@asynccontextmanager
async def http(handler: Handler, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Server]:
    """`handler` gives the raw bytes of the answer; the connection is closed after it."""
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(method, target, headers, body)
            server.seen.append(request)
            result = handler(request)
            writer.write(result if isinstance(result, bytes) else await result)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writers.discard(writer)
            writer.close()

    listener = await asyncio.start_server(serve, host, port)
    server = Server(f"{host}:{listener.sockets[0].getsockname()[1]}")
    try:
        yield server
    finally:
        for writer in list(writers):
            writer.transport.abort()
        listener.close()
        await listener.wait_closed()


@contextmanager
def beside(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Serve in a thread with an event loop of its own."""
    serving, over = threading.Event(), threading.Event()
    made: list[T] = []

    async def serve() -> None:
        async with server as one:
            made.append(one)
            serving.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        assert serving.wait(60), "the stand-in did not start"
        yield made[0]
    finally:
        over.set()
        thread.join(60)


@dataclass
class Mail:
    sender: str
    recipients: list[str]
    data: bytes


@dataclass
class MailServer:
    """`lines`: all that it was sent before the mails; `answers`: what it says to a line, None as usual. `plain`: those
    of the lines that came without TLS."""

    port: int
    mails: list[Mail] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    answers: Callable[[str], str | None] = lambda line: None
    plain: list[str] = field(default_factory=list)


@asynccontextmanager
async def smtp(
    replies: dict[str, str] | None = None, tls: ssl.SSLContext | None = None, *, from_the_start: bool = False
) -> AsyncIterator[MailServer]:
    """`replies` replaces the answer to a line that begins with its key, e.g. {"RCPT TO:<bob": "550 unknown"}. `tls`:
    after STARTTLS, or `from_the_start`."""
    given = replies or {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")

        sender = ""
        recipients: list[str] = []
        say(given.get("hello", "220 test"))
        try:
            while read := (await reader.readline()).decode():
                line = read.rstrip("\r\n")
                server.lines.append(line)
                if writer.get_extra_info("ssl_object") is None:
                    server.plain.append(line)
                reply = server.answers(line)
                if reply is None:
                    beginnings = (text for start, text in given.items() if line.upper().startswith(start.upper()))
                    reply = next(beginnings, None)
                verb = line.split(" ")[0].upper()
                if reply is not None:
                    say(reply)
                elif verb == "STARTTLS" and tls is not None:
                    say("220 go on")
                    await writer.drain()
                    await writer.start_tls(tls)
                elif verb == "AUTH":
                    say("235 ok")
                elif verb == "EHLO":
                    say("250 test")
                elif verb == "MAIL":
                    sender, recipients = line[line.index("<") + 1 : line.index(">")], []
                    say("250 ok")
                elif verb == "RCPT":
                    recipients.append(line[line.index("<") + 1 : line.index(">")])
                    say("250 ok")
                elif verb == "DATA":
                    say("354 go on")
                    data = await reader.readuntil(b"\r\n.\r\n")
                    server.mails.append(Mail(sender, recipients, data.removesuffix(b".\r\n")))
                    say("250 taken")
                elif verb == "QUIT":
                    say("221 bye")
                    break
                else:
                    say("250 ok")
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls if from_the_start else None)
    server = MailServer(listener.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listener.close()
        await listener.wait_closed()
