"""Forms with files: whatever the pieces in which a body arrives, it is read as it was sent, and within its bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import orjson
import pytest

from executor.kernel.values.files import File, Files
from server.http.errors import BodyInvalid, BodyTooLarge
from server.http.multipart import boundary_of, read_form_with_files


class Stored:
    """Keeps what is saved."""

    bytes_max = 10_000

    def __init__(self) -> None:
        self.saved: list[tuple[str, str | None, bytes]] = []

    async def save(self, content: AsyncIterator[bytes], name: str, media_type: str | None) -> File:
        self.saved.append((name, media_type, b"".join([piece async for piece in content])))
        return File("file_" + "0" * 64, name, media_type or "", len(self.saved[-1][2]))

    def proof(self, id: str, uploader: str) -> str:
        return f"{id} of {uploader}"


def part(head: str, content: bytes) -> bytes:
    return f"--xYz\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"


END = b"--xYz--\r\n"
TRICKY = b"\r\n--xY not the boundary\r\n-\r\n--" * 20
BODY = (
    part('name="once"', b"abc")
    + part('name="field.a"; filename="ü.csv"\r\nContent-Type: text/csv', TRICKY)
    + part('name="field.b"; filename=""\r\nContent-Type: application/octet-stream', b"")
    + part('name="field.c"; filename="x.txt"', b"not asked for")
    + part('name="field.text"', "größe\r\n2".encode())
    + END
)


async def read(body: bytes, step: int, text_max: int = 1_000) -> tuple[dict[str, str], Stored]:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), step):
            yield body[start : start + step]

    stored = Stored()
    files = cast(Files, stored)
    return await read_form_with_files(pieces(), b"xYz", files, {"field.a", "field.b"}, text_max, uploader="u"), stored


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 100_000])
async def test_a_form_in_pieces(step: int) -> None:
    found, stored = await read(BODY, step)
    assert {name: text for name, text in found.items() if name != "field.a"} == {
        "once": "abc",
        "field.text": "größe\r\n2",
    }
    file = orjson.loads(found["field.a"])
    assert (file["type"], file["proof"]) == ("file", f"{file['id']} of u")
    ((name, media, content),) = stored.saved
    assert (name, media, content) == ("ü.csv", "text/csv", TRICKY)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--xYz",
        part('name="a"', b"1"),
        b"--xYz\r\n\r\n\r\n1\r\n" + END,
        b"--xYz\r\n" + b"X: y\r\n" * 5_000 + b"\r\n1\r\n" + END,
        part('name="a"', b"\xff") + END,
        part('filename="x"', b"1") + END,
        part(f'name="{";" * 65}"', b"1") + END,
    ],
)
async def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(BodyInvalid):
        await read(body, 100)


async def test_a_form_is_bounded() -> None:
    with pytest.raises(BodyTooLarge):
        await read(part('name="a"', b"x" * 2_000) + END, 100)
    with pytest.raises(BodyTooLarge):
        await read(part('name="field.a"; filename="x"', b"x" * 20_000) + END, 100)
    with pytest.raises(BodyInvalid):
        await read(b"".join(part(f'name="{n}"', b"") for n in range(1_001)) + END, 1_000, 100_000)
    with pytest.raises(BodyInvalid):
        await read(b"".join(part('name="field.a"; filename="x"', b"") for _ in range(21)) + END, 1_000)


MANY_PARAMETERS = "multipart/form-data; boundary=b" + ";" * 65


def test_boundaries() -> None:
    assert boundary_of("application/x-www-form-urlencoded") is None
    assert boundary_of('Multipart/Form-Data; charset=utf-8; boundary="a b"') == b"a b"
    for wrong in ("multipart/form-data", "multipart/form-data; boundary=" + "x" * 71, MANY_PARAMETERS):
        with pytest.raises(BodyInvalid):
            boundary_of(wrong)
