"""A mail server that is read by IMAP: one folder, whose mails are added by a test."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage


class Imap:
    """`received` has the commands that were sent. `mails` are bytes by UID."""

    def __init__(self) -> None:
        self.place = ""
        self.validity = 1
        self.mails: dict[int, bytes] = {}
        self.received: list[str] = []

    def add(self, subject: str, text: str = "Hello", file: str = "", content: bytes = b"1") -> None:
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = subject, "Ada <ada@example.org>", "bob@example.org"
        message.set_content(text)
        if file:
            message.add_attachment(content, maintype="text", subtype="csv", filename=file)
        self.mails[max(self.mails, default=0) + 1] = bytes(message)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        while line := (await reader.readline()).decode().rstrip():
            tag, _, command = line.partition(" ")
            self.received.append(command)
            lines, end = self._answer(command)
            writer.write(b"".join(each + b"\r\n" for each in [*lines, f"{tag} {end}".encode()]))
            await writer.drain()
            if command == "LOGOUT":
                break
        writer.close()

    def _answer(self, command: str) -> tuple[list[bytes], str]:
        name = command.partition(" ")[0]
        if name == "LOGIN":
            return [], "OK done" if command.endswith('"a password"') else "NO [AUTHENTICATIONFAILED] wrong"
        if name == "EXAMINE":
            if '"INBOX"' not in command:
                return [], "NO no such folder"
            following = max(self.mails, default=0) + 1
            facts = [f"{len(self.mails)} EXISTS", f"OK [UIDVALIDITY {self.validity}]", f"OK [UIDNEXT {following}]"]
            return [f"* {fact}".encode() for fact in facts], "OK [READ-ONLY] done"
        if match := re.fullmatch(r"UID SEARCH UID (\d+):\*", command):
            found = [uid for uid in self.mails if uid >= int(match[1]) or uid == max(self.mails)]
            return [f"* SEARCH {' '.join(map(str, found))}".rstrip().encode()], "OK done"
        if match := re.fullmatch(r"UID FETCH ([\d,]+) \(UID RFC822.SIZE\)", command):
            sizes = {uid: len(self.mails[int(uid)]) for uid in match[1].split(",")}
            return [f"* 1 FETCH (UID {uid} RFC822.SIZE {size})".encode() for uid, size in sizes.items()], "OK done"
        if match := re.fullmatch(r"UID FETCH (\d+) \(UID BODY.PEEK\[\]<0.(\d+)>\)", command):
            data = self.mails[int(match[1])][: int(match[2])]
            return [f"* 1 FETCH (UID {match[1]} BODY[]<0> {{{len(data)}}}\r\n".encode() + data + b")"], "OK done"
        return [b"* CAPABILITY IMAP4rev1"] if name == "CAPABILITY" else [
            b"* BYE"
        ] if name == "LOGOUT" else [], "OK done"


@asynccontextmanager
async def imap() -> AsyncIterator[Imap]:
    one = Imap()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        server.close()
