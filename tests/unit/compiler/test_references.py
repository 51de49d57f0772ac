from __future__ import annotations

import time

import pytest

from compiler.references import find, normalize, parse, texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello <draft.content>!", ["draft.content"]),
        ("<Draft one.content[0].x ?? 0>", ["Draft one.content[0].x ?? 0"]),
        ('<a.b ?? "x > y"> and <c>', ['a.b ?? "x > y"', "c"]),
        ("a < b and c > d", []),
        ("x <y && <a.b> z", ["a.b"]),
        ("<a><b>", ["a", "b"]),
        ('<div class="x">', []),
        ("cost: ${PRICE} ${not valid} $PRICE", ["PRICE"]),
        ('<order["odd key"].n>', ['order["odd key"].n']),
        ("", []),
    ],
)
def test_find(text: str, expected: list[str]) -> None:
    assert [found.text for found in find(text)] == expected


def test_offsets_span_the_whole_reference() -> None:
    (found, env) = find("ab <x.y> ${KEY}")
    assert "ab <x.y> ${KEY}"[found.start : found.end] == "<x.y>"
    assert (found.key, env.key, env.env) == ("x.y", "${KEY}", True)


@pytest.mark.parametrize(
    ("text", "segments", "default"),
    [
        ("Draft one.content[0].x ?? 0", ("Draft one", "content", 0, "x"), "0"),
        ("a", ("a",), None),
        ('a.b ?? {"k": [1, null]}', ("a", "b"), '{"k":[1,null]}'),
        ("a.b ?? 'x'", ("a", "b"), '"x"'),
        ('a["odd key"][2]', ("a", "odd key", 2), None),
        ("v1.2 draft.out", ("v1", "2 draft", "out"), None),
    ],
)
def test_parse(text: str, segments: tuple[str | int, ...], default: str | None) -> None:
    parsed = parse(text)
    assert parsed is not None
    assert parsed.segments == segments
    assert parsed.default == default


@pytest.mark.parametrize("text", ["a..b", "a.", ".a", "a[0]x", "a ?? nope", "", "a.b ??"])
def test_parse_refuses(text: str) -> None:
    assert parse(text) is None


def test_names_ignore_case_blanks_and_dots() -> None:
    assert normalize("Draft v1.2") == normalize("draftV12") == "draftv12"


def test_texts_are_found_with_their_pointers() -> None:
    params = {"a": "x", "b": [{"c/d": "y"}, 3, "z"], "e": {"~": "w"}}
    assert list(texts(params, {"/b/2"})) == [
        ("/a", "x", False),
        ("/b/0/c~1d", "y", False),
        ("/b/2", "z", True),
        ("/e/~0", "w", False),
    ]


@pytest.mark.parametrize(
    "text", ["<a" * 200_000, '<a ?? "' * 100_000, "<a[0" * 100_000, "${" * 200_000, "<a?" * 100_000]
)
def test_hostile_text_costs_linear_time(text: str) -> None:
    began = time.process_time()
    find(text)
    assert time.process_time() - began < 2
