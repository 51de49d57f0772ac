from __future__ import annotations

import pytest

from compiler.python import references, rewrite
from tests.support.cost import computes_within

KNOWN = {"a.x", "b", "draft one.c ?? 0", "${KEY}"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<a.x> > 3", '__v["a.x"] > 3'),
        ("return<a.x>if 1 else 2", 'return __v["a.x"] if 1 else 2'),
        ("len(<draft one.c ?? 0>)", 'len(__v["draft one.c ?? 0"])'),
        ("a < b and c > d", "a < b and c > d"),
        ("<unknown.x> + 1", "<unknown.x> + 1"),
        ("'hi <a.x> {b} <b>'", """f'hi {__t["a.x"]} {{b}} {__t["b"]}'"""),
        ('"""<a.x>\n"<b>" """', 'f"""{__t["a.x"]}\n"{__t["b"]}" """'),
        ("'one' 'two <b>'", "'one' f'two {__t[\"b\"]}'"),
        (r"r'\d{2}<b>'", r"""fr'\d{{2}}{__t["b"]}'"""),
        (r"u'\N{DIGIT ONE}\{<b>'", r"""f'\N{DIGIT ONE}\{{{__t["b"]}'"""),
        ("b'<b>'", "b'<b>'"),
        ("f'<b> {<b> + 1} {{<b>}}'", """f'{__t["b"]} {__v["b"] + 1} {{{__t["b"]}}}'"""),
        ("f'{ {1: <b>}[1]:>{<a.x>}} <b>'", """f'{ {1: __v["b"]}[1]:>{__v["a.x"]}} {__t["b"]}'"""),
        ("f'{\"in <b>\"}' + <b>", """f'{f"in {__t["b"]}"}' + __v["b"]"""),
        ("# <a.x>\n<b> # <b>", '# <a.x>\n__v["b"] # <b>'),
        ("'it\\'s <b>'", "f'it\\'s {__t[\"b\"]}'"),
        ("${KEY} + '${KEY}'", '__v["${KEY}"] + f\'{__t["${KEY}"]}\''),
        ("'unclosed <b>\n<b>", '\'unclosed <b>\n__v["b"]'),
        ("", ""),
    ],
)
def test_rewrite(source: str, expected: str) -> None:
    assert rewrite(source, KNOWN).source == expected


def test_values_and_texts_are_listed_once() -> None:
    result = rewrite("<a.x> + <a.x> + '<b><b>' + ${KEY}", KNOWN)
    assert result.values == ("a.x", "${KEY}")
    assert result.texts == ("b",)


def test_a_reference_key_cannot_break_out_of_its_literal() -> None:
    text = 'a["k"] ?? "q"'
    assert rewrite(f"<{text}>", {text}).source == r'__v["a[\"k\"] ?? \"q\""]'


def test_places() -> None:
    found = references("<b> + '<b>' + f'<b>' # <b>", lambda f: f.text == "b")
    assert [where for where, _ in found] == ["code", "string", "template"]


@pytest.mark.parametrize(
    "source", ["f'{" * 50_000 + "<b>", "'''" * 33_333 + "<b>", "<a" * 100_000, "f'{{" * 50_000 + "<b>", "'<b>" * 50_000]
)
def test_hostile_source_costs_linear_time(source: str) -> None:
    with computes_within(3):
        rewrite(source, KNOWN)
