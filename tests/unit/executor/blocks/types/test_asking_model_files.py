"""Files that models are shown: whole engines and the scripted model over both wire formats."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from executor.blocks.types.asking import BYTES_MAX, FILES_MAX, content_of
from executor.errors import BlockError
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.dev_model import DevModel, dev_model
from tests.support.documents import chain
from tests.support.endpoints import answer, http
from tests.support.runs import engine_on, outputs, ran, settled, token_of

Json = dict[str, Any]
ONCE = {"policy": {"retry": {"max_attempts": 1}}}
PDF = b"%PDF-1.4\n1 0 obj << /Type /Page >>"
SEEN: Json = {"text": "I see {{files}}"}


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


async def stored(engine: Engine, data: bytes, name: str) -> Json:
    async def content() -> Any:
        yield data

    return (await engine.parts.files.save(content(), name)).value


async def run(engine: Engine, files: Any, type: str = "agent", **params: Any) -> RunView:
    given = {"model": "dev:m", "files": "<start.files>", **params} | ({"prompt": "Look."} if type == "agent" else {})
    return await ran(engine, chain("a", a={"type": type, "params": given} | ONCE), input={"files": files})


@pytest.mark.parametrize("dialect", ["", "anthropic+"])
async def test_a_model_sees_images_pdf_and_text(tmp_path: Path, dialect: str) -> None:
    async with dev_model(SEEN) as model:
        url = model.url if not dialect else f"anthropic+http://{model.place}"
        async with engine_on(tmp_path / "weft.db", models={"DEV": url}) as engine:
            image = await stored(engine, png(64, 48), "receipt.bin")  # what it is, its content says
            paper = await stored(engine, PDF, "a.pdf")
            note = await stored(engine, "Größe: 7".encode(), "note.txt")
            view = await run(engine, [image, paper, note])
            assert view.status == "succeeded", view.error
            first = f"image/png, {len(png(64, 48))} bytes, 64 x 48"
            assert outputs(view)["a"]["content"] == f"I see {first}; application/pdf, {len(PDF)} bytes, 1 pages"
            [call] = await model.calls()
            shown = repr(call["body"]["messages"])
            assert "The file note.txt:" in shown and "Größe: 7" in shown


async def test_each_block_that_asks_a_model_shows_them(tmp_path: Path) -> None:
    said: dict[str, Json] = {
        "model_router": {"route": "one", "reason": "{{files}}"},
        "evaluator": {"m": {"score": 1, "reason": "{{files}}"}},
        "guardrail": {"passed": True, "reason": "{{files}}"},
    }
    params: dict[str, Json] = {
        "model_router": {"context": "x", "routes": [{"id": "one"}, {"id": "two"}]},
        "evaluator": {"content": "x", "metrics": [{"name": "m", "min": 0, "max": 1}]},
        "guardrail": {"check": "model", "rule": "Be kind.", "input": "x"},
    }
    rules: list[Json] = [
        {"when": {"file": "image/png", "model": type}, "output": output} for type, output in said.items()
    ]
    async with dev_model(*rules) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        image = await stored(engine, png(2, 3), "a.png")
        for type in said:
            view = await run(engine, image, type, **params[type] | {"model": f"dev:{type}"})
            assert view.status == "succeeded", view.error
            assert "2 x 3" in repr(outputs(view)["a"])


async def test_a_message_of_the_user_may_have_files(tmp_path: Path) -> None:
    async with dev_model(SEEN) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        image = await stored(engine, png(5, 6), "a.png")
        messages = [{"role": "user", "content": "Look.", "files": ["<start.image>"]}]
        params = {"model": "dev:m", "messages": messages, "prompt": ""}
        view = await ran(engine, chain("a", a={"type": "agent", "params": params} | ONCE), input={"image": image})
        assert view.status == "succeeded", view.error
        earlier = (await model.calls())[-1]["body"]["messages"]
        assert [part["type"] for part in earlier[0]["content"]] == ["text", "image_url"]
        refused = await run(engine, None, messages=[{"role": "assistant", "content": "x", "files": [image]}])
        assert refused.error is not None and "only messages of the user" in str(refused.error)


async def test_a_crash_reads_them_again_and_asks_once(tmp_path: Path) -> None:
    """The call of the model is not repeated; the next one has the file."""
    call: Json = {"when": {"tool": ""}, "calls": [{"name": "ask", "arguments": {}}]}
    async with dev_model(call, SEEN) as model:
        tool = {"name": "ask", "block": "http", "approve": "always", "params": {"url": "http://127.0.0.1:1/"}}
        async with engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
            image = await stored(engine, png(5, 6), "a.png")
            params = {"model": "dev:m", "files": "<start.files>", "prompt": "Look.", "tools": [tool]}
            document = chain("a", a={"type": "agent", "params": params} | ONCE)
            id = (await engine.submit(document, input={"files": image})).run
            assert (await settled(engine, id)).status == "waiting"
        async with engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
            [wait] = await engine.waits.list(run=id)
            await engine.waits.answer(token_of(wait.link), {}, "reject")
            view = await settled(engine, id)
            assert "5 x 6" in outputs(view)["a"]["content"]
            assert len(await model.calls()) == 2


async def code_of(engine: Engine, model: DevModel, files: Any) -> str:
    view = await run(engine, files)
    assert view.error is not None and await model.calls() == []
    return str(view.error["code"])


async def test_what_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    async with dev_model(SEEN) as model, engine_on(tmp_path / "weft.db", models={"DEV": model.url}) as engine:
        assert await code_of(engine, model, await stored(engine, b"\0\1\2" * 99, "a.png")) == "file_type_refused"
        assert await code_of(engine, model, [await stored(engine, b"x" * (BYTES_MAX + 1), "a")]) == "file_too_large"
        half = [await stored(engine, bytes([65 + n]) * (BYTES_MAX // 2 + 1), "a") for n in range(2)]
        assert await code_of(engine, model, half) == "file_too_large"
        many = [await stored(engine, str(n).encode(), "a") for n in range(FILES_MAX + 1)]
        assert await code_of(engine, model, many) == "params_invalid"
        assert await code_of(engine, model, "a.png") == "params_invalid"


async def test_a_model_that_takes_no_files_says_so(tmp_path: Path) -> None:
    body = b'{"error": {"message": "image_url is not supported"}}'
    async with (
        http(lambda r: answer(400, body, content_type="application/json")) as server,
        engine_on(tmp_path / "weft.db", models={"DEV": server.url}) as engine,
    ):
        view = await run(engine, await stored(engine, png(1, 1), "a.png"))
    assert view.error is not None and view.error["code"] == "model_refused"
    assert "image_url is not supported" in str(view.error) and "may not take such files" in str(view.error)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(1, 1), "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF87a..", "image/gif"),
        (b"RIFF1234WEBP", "image/webp"), (PDF, "application/pdf"), (b"\xff\xfea\0b\0", "text/plain"),
        (b"", "text/plain"),
    ],
)  # fmt: skip
def test_types(data: bytes, media_type: str) -> None:
    assert content_of("a", data).media_type == media_type


@pytest.mark.parametrize("data", [b"\x89PNG", b"a\0b", b"RIFF1234WAVE\xff"])
def test_other_types(data: bytes) -> None:
    with pytest.raises(BlockError) as caught:
        content_of("a", data)
    assert caught.value.code == "file_type_refused"
