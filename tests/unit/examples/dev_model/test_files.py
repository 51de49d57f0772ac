"""Files that the scripted model is shown."""

import base64
from typing import Any

import pytest

from examples.dev_model.anthropic import read as read_anthropic
from examples.dev_model.files import cut, of_base64, of_url
from examples.dev_model.openai import read as read_openai
from examples.dev_model.script import Answer, Player, read_script

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x30\x08\x02\0\0\0"
GIF = b"GIF89a\x03\0\x02\0"
PDF = b"%PDF-1.4\n1 0 obj << /Type /Pages >> 2 0 obj << /Type /Page >> 3 0 obj << /Type/Page >>"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("media_type", "data", "about"),
    [
        ("image/png", PNG, "image/png, 29 bytes, 64 x 48"),
        ("image/gif", GIF, "image/gif, 10 bytes, 3 x 2"),
        ("image/jpeg", b"\xff\xd8\xff\xe0", "image/jpeg, 4 bytes"),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp, 16 bytes"),
        ("application/pdf", PDF, f"application/pdf, {len(PDF)} bytes, 2 pages"),
    ],
)
def test_what_is_seen(media_type: str, data: bytes, about: str) -> None:
    assert of_url(f"data:{media_type};base64,{encoded(data)}").about == about


@pytest.mark.parametrize("media_type", ["image/png", "image/gif", "image/jpeg", "image/webp", "application/pdf"])
def test_a_file_of_another_type_is_refused(media_type: str) -> None:
    with pytest.raises(ValueError, match="this is no"):
        of_base64(media_type, encoded(b"something else, long enough"))


def test_what_is_no_file() -> None:
    with pytest.raises(ValueError, match="no base64"):
        of_base64("image/png", "***")
    with pytest.raises(ValueError, match="not supported"):
        of_base64("audio/mpeg", encoded(b"x"))
    with pytest.raises(ValueError, match="data: URL"):
        of_url("https://example.org/a.png")


def test_rules_about_files() -> None:
    script = (
        b'{"rules": [{"when": {"file": "image/"}, "output": {"a": ["It is {{files}}", 1]}}, {"text": "{{files}}"}]}'
    )
    player = Player(read_script(script))
    image: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded(PNG)}"}}
    shown = [{"type": "text", "text": "x"}, image]
    asked = read_openai({"model": "m", "messages": [{"role": "user", "content": shown}]})
    answer = player.answer(asked)
    assert isinstance(answer, Answer) and answer.text == '{"a":["It is image/png, 29 bytes, 64 x 48",1]}'
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded(PDF)}
    content = [{"type": "text", "text": "x"}, {"type": "document", "source": source}]
    answer = player.answer(read_anthropic({"model": "m", "messages": [{"role": "user", "content": content}]}))
    assert isinstance(answer, Answer) and answer.text == f"application/pdf, {len(PDF)} bytes, 2 pages"
    none = player.answer(read_openai({"model": "m", "messages": [{"role": "user", "content": "x"}]}))
    assert isinstance(none, Answer) and none.text == "no files"


def test_a_request_is_kept_without_its_files() -> None:
    shown = cut({"content": [{"url": f"data:image/png;base64,{'A' * 4000}"}, {"text": "B" * 4000}]})
    assert len(shown["content"][0]["url"]) < 100 and "4022 characters" in shown["content"][0]["url"]
    assert shown["content"][1]["text"] == "B" * 4000
