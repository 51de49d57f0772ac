"""Files in blocks: as text for code, as bodies and forms of requests, as responses, as attachments."""

from __future__ import annotations

import base64
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.api import ended
from tests.support.endpoints import Request, answer, http, smtp

RAW = {"content-type": "application/octet-stream"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


async def _file(client: httpx.AsyncClient, content: bytes, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (
        await client.post("/api/files", params={"name": name}, content=content, headers=RAW)
    ).json()
    return found


async def _run(client: httpx.AsyncClient, type: str, params: dict[str, Any], **input: Any) -> dict[str, Any]:
    document = {
        "format": "weft/1",
        "name": "one",
        "blocks": {"start": {"type": "start"}, "block": {"type": type, "params": params}},
        "edges": [{"source": "start", "target": "block"}],
    }
    started = await client.post("/api/runs", json={"document": document, "input": input})
    assert started.status_code == 202, started.text
    return await ended(client, started.json()["run"])


@pytest.mark.parametrize(
    ("how", "code", "result"),
    [
        ("text", "return <input.a>.text.trim() + <input.list>[0].text.length", "größe3"),
        ("base64", "return <input.a>.base64", base64.b64encode("größe\n".encode()).decode()),
        ("value", "return Object.keys(<input.a>).sort().join()", "id,media_type,name,size,type"),
    ],
)
async def test_code_reads_files(client: httpx.AsyncClient, how: str, code: str, result: str) -> None:
    one = await _file(client, b"\xef\xbb\xbf" * (how == "text") + "größe\n".encode(), "a.txt")
    two = await _file(client, b"abc", "b.txt")
    run = await _run(client, "function", {"code": code, "files": how}, a=one, list=[two])
    assert run["status"] == "succeeded", run["error"]
    assert run["output"]["result"] == result


async def test_code_cannot_read_what_is_no_text_or_too_large(client: httpx.AsyncClient) -> None:
    params = {"code": "return <input.a>.text", "files": "text"}
    for content, code in ((PNG, "file_not_text"), (b"x" * (8 * 1024 * 1024 + 1), "file_too_large")):
        run = await _run(client, "function", params, a=await _file(client, content, "a"))
        assert (run["status"], run["error"]["code"]) == ("failed", code)


async def test_a_request_sends_a_file_and_saves_one(settings: Settings) -> None:
    async def handler(request: Request) -> bytes:
        return answer(200, PNG, content_type="image/png", content_disposition='attachment; filename="../x/Bild.png"')

    async with http(handler) as server:
        own = replace(settings, allow_private=(server.place,))
        engine = await build_engine(own)
        transport = httpx.ASGITransport(app=create_app(own, engine))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
                file = await _file(client, PNG, "in.png")
                url = f"http://{server.place}/pictures/p.png"
                sent = {"url": url, "method": "POST", "body": "<input.a>", "save_file": True}
                run = await _run(client, "http", sent, a=file)
                assert run["status"] == "succeeded", run["error"]
                body = run["output"]["body"]
                assert (body["name"], body["media_type"], run["output"]["encoding"]) == (
                    "Bild.png",
                    "image/png",
                    "file",
                )
                assert (await client.get(f"/api/files/{body['id']}")).content == PNG
                form = {"url": url, "method": "POST", "headers": {"Content-Type": "multipart/form-data"}}
                run = await _run(
                    client, "http", {**form, "body": {"note": "hi", "pictures": "<input.all>"}}, all=[file, file]
                )
                assert run["status"] == "succeeded", run["error"]
        finally:
            await engine.close()
    first, second = server.seen
    assert (first.body, first.headers["content-type"]) == (PNG, "image/png")
    head = f"Content-Type: {second.headers['content-type']}\r\n\r\n".encode()
    parts = list(message_from_bytes(head + second.body, policy=default).iter_parts())
    shown = [(part.get_param("name", header="content-disposition"), part.get_filename()) for part in parts]
    assert shown == [("note", None), ("pictures", "in.png"), ("pictures", "in.png")]
    assert parts[1].get_payload(decode=True) == PNG


async def test_a_mail_has_attachments(settings: Settings) -> None:
    async with smtp() as server:
        own = replace(settings, mail_transport="smtp", mail_port=server.port, mail_start_tls=False)
        engine = await build_engine(own)
        transport = httpx.ASGITransport(app=create_app(own, engine))
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
                file = await _file(client, PNG, 'a"\r\nBcc: eve@example.org.png')
                text = await _file(client, b"a,b\n", "t.csv")
                params = {
                    "to": "ada@example.org",
                    "subject": "s",
                    "body": "b",
                    "attachments": ["<input.a>", "<input.t>"],
                }
                run = await _run(client, "email", params, a=file, t=text)
                assert run["status"] == "succeeded", run["error"]
                wrong = await _run(client, "email", {**params, "attachments": "<input.t.name>"}, t=text)
                assert wrong["error"]["code"] == "params_invalid"
        finally:
            await engine.close()
    (sent,) = server.mails
    message = message_from_bytes(sent.data, policy=default)
    assert sent.recipients == ["ada@example.org"] and message["bcc"] is None
    one, two = message.iter_attachments()
    assert one.get_payload(decode=True) == PNG and "Bcc" in str(one.get_filename())
    assert (two.get_filename(), two.get_content_type()) == ("t.csv", "text/csv")


async def test_a_block_makes_files(client: httpx.AsyncClient, tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "=1+1"}, {"a": None, "c": [1]}]
    run = await _run(client, "file", {"name": "x.csv", "format": "csv", "content": "<input.rows>"}, rows=rows)
    file = run["output"]
    assert (file["type"], file["name"], file["media_type"]) == ("file", "x.csv", "text/csv")
    made = await client.get(f"/api/files/{file['id']}")
    assert made.text == "a,b,c\r\n1,'=1+1,\r\n,,[1]\r\n"
    run = await _run(client, "file", {"name": "p.png", "format": "base64", "content": base64.b64encode(PNG).decode()})
    assert (await client.get(f"/api/files/{run['output']['id']}")).content == PNG
    run = await _run(client, "file", {"name": "p.png", "format": "base64", "content": "no!"})
    assert run["error"]["code"] == "params_invalid"


async def test_secrets_are_taken_out_of_files_that_blocks_make(settings: Settings) -> None:
    own = replace(settings, secrets={"API_KEY": "a-key-that-is-secret"}, unbound_secrets=True)
    engine = await build_engine(own)
    transport = httpx.ASGITransport(app=create_app(own, engine))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
            run = await _run(client, "file", {"name": "${API_KEY}.txt", "content": "key: ${API_KEY}"})
            made = await client.get(f"/api/files/{run['output']['id']}")
            assert made.text == "key: [redacted]"
            assert "that-is" not in made.headers["content-disposition"]
    finally:
        await engine.close()
