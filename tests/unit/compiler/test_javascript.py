from __future__ import annotations

import pytest

from compiler.javascript import references, rewrite
from tests.support.cost import computes_within

KNOWN = {"a.x", "b", "draft one.c ?? 0", "${KEY}"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<a.x> > 3", '__v["a.x"] > 3'),
        ("return<a.x>", 'return __v["a.x"]'),
        ("<draft one.c ?? 0>.length", '__v["draft one.c ?? 0"].length'),
        ("a < b && c > d", "a < b && c > d"),
        ("<unknown.x> + 1", "<unknown.x> + 1"),
        ("'<a.x>' === 1", "('' + __t[\"a.x\"] + '') === 1"),
        ('"hi <a.x> and <b>"', '("hi " + __t["a.x"] + " and " + __t["b"] + "")'),
        ("`t <a.x> ${<b> + `in <b>`} ${KEY}`", '`t ${__t["a.x"]} ${__v["b"] + `in ${__t["b"]}`} ${__t["${KEY}"]}`'),
        ("`${ {k: '}'}.k } <b>`", "`${ {k: '}'}.k } ${__t[\"b\"]}`"),
        ("// <a.x>\n/* <b> */ <b>", '// <a.x>\n/* <b> */ __v["b"]'),
        ("/<a.x>['\"]/.test(<a.x>)", '/<a.x>[\'"]/.test(__v["a.x"])'),
        ("f(1) / <a.x> / 2", 'f(1) / __v["a.x"] / 2'),
        ("'\\<a.x>'", "'\\<a.x>'"),
        ("'it\\'s <b>'", "('it\\'s ' + __t[\"b\"] + '')"),
        ("${KEY} + '${KEY}'", "__v[\"${KEY}\"] + ('' + __t[\"${KEY}\"] + '')"),
        ("`${OTHER}`", "`${OTHER}`"),
        ("'unclosed <b>", '\'unclosed __v["b"]'),
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
    found = references("<b> + '<b>' + `<b>` // <b>", lambda f: f.text == "b")
    assert [where for where, _ in found] == ["code", "string", "template"]


@pytest.mark.parametrize(
    "source", ["`${" * 50_000, "/*" * 100_000, "<a" * 100_000, "{" * 100_000, "'<b>" * 50_000, "/[" * 100_000]
)
def test_hostile_source_costs_linear_time(source: str) -> None:
    with computes_within(3):
        rewrite(source, KNOWN)
