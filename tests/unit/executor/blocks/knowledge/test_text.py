from __future__ import annotations

import random

import pytest

from executor.blocks.knowledge.text import chunks_of, text_of, word_number, words_in, words_of
from executor.errors import BadRequest
from tests.support.pdf import pdf_with


def test_chunks_have_whole_paragraphs_and_their_headings() -> None:
    text = "# Tea\n\nGreen.\n\nBlack.\n\n## Water\nHot.\n\n# Coffee\n\nStrong."
    assert chunks_of(text, 200, 0) == ["Tea\n\nGreen.\n\nBlack.", "Tea > Water\n\nHot.", "Coffee\n\nStrong."]


def test_a_chunk_begins_with_the_end_of_the_one_before() -> None:
    first, second = chunks_of(f"{'a' * 100} the end\n\n{'b' * 100}", 200, 20)
    assert first.endswith("the end") and second.startswith("the end\n\nbbb")


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    chunks = chunks_of("One sentence. " * 40, 200, 0)
    assert len(chunks) == 3 and all(chunk.endswith("sentence.") for chunk in chunks)


@pytest.mark.parametrize("seed", range(20))
def test_no_chunk_is_too_long_and_no_word_is_lost(seed: int) -> None:
    dice = random.Random(seed)
    words = [f"w{n}" + "x" * dice.choice((0, 3, 300)) for n in range(300)]
    text = "".join(word + dice.choice((" ", " ", ". ", "\n", "\n\n", "\n\n# ")) for word in words)
    size, overlap = dice.choice(((200, 0), (400, 100), (1_600, 200)))
    chunks = chunks_of(text, size, overlap)
    assert max(map(len, chunks)) <= size
    joined = "".join("".join(chunks).split())
    assert all(word[:90] in joined for word in words)


def test_headings_without_a_text_are_found_too() -> None:
    assert chunks_of("# A\n\n# B\n## C\n\n# D", 200, 0) == ["A", "B > C", "D"]


def test_the_text_of_files() -> None:
    page = b"<head><title>x</title></head><h2>Tea</h2><p>Hot <b>water</b></p><script>no()</script>"
    assert [line for line in text_of(page, "text/html", "a.html").split("\n") if line.strip()] == [
        "## Tea",
        "Hot water",
    ]
    assert (
        text_of(b"name,kind\nSencha,green\nAssam,\n", "text/csv", "a.csv") == "name: Sencha\nkind: green\n\nname: Assam"
    )
    assert text_of(b'[{"name": "Sencha", "n": 1}]', "application/json", "a.json") == "name: Sencha\nn: 1"
    assert text_of(b"\xef\xbb\xbfplain\r\n", "text/plain", "a.txt") == "plain\n"


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(b"\xff\xfe", "text/plain"), (b"a\0b", "text/plain"), (b"{", "application/json"), (b"%PDF-1.7 no", "text/plain")],
)
def test_what_cannot_be_read_is_refused(data: bytes, media_type: str) -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(BadRequest) as raised:
        text_of(data, media_type, "a")
    assert raised.value.code == "knowledge_unreadable" and raised.value.hint


def test_the_text_of_a_pdf() -> None:
    assert text_of(pdf_with("Green tea"), "application/octet-stream", "a.pdf").strip() == "Green tea"


def test_words() -> None:
    assert list(words_in("Café, the CAFE-Bar! 緑茶を飲む")) == [
        "cafe",
        "the",
        "cafe",
        "bar",
        "緑茶",
        "茶を",
        "を飲",
        "飲む",
    ]
    assert dict(words_of("tea Tea water")) == {word_number("tea"): 2, word_number("water"): 1}
    assert word_number("tea") == 2391201714, "stored: it must not change"
