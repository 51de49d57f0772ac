from typing import Literal

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from tests.unit.executor.blocks.sandbox.run import evaluate, program

Kind = Literal["expression", "code"]


def message_of(sandbox: Sandbox, source: str, kind: Kind) -> str:
    found = sandbox.check_syntax(source, kind)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("expression", "1"),
        ("expression", "__v['a.b'] > 3 && __t['c'] !== ''"),
        ("expression", "({ a: 1, ...v.o })"),
        ("expression", "(() => { for (;;) {} })()"),
        ("expression", "a ? b : c // why"),
        ("expression", "`x${ `y${ 1 }` }`"),
        ("expression", "/[)\\]]/.test(x)"),
        ("expression", "')' + \"]\" + `)`"),
        ("code", ""),
        ("code", "return 1"),
        ("code", "const { a, ...b } = v; if (a) { return b } else { await 1 }"),
        ("code", "class A { #x = 1; get x() { return this.#x } }\nreturn new A().x"),
        ("code", "const s = '}'; return `}${ '}' }` + /}/.source // }"),
        ("code", "label: for (;;) { break label }"),
    ],
)
def test_what_parses_is_fine_and_is_not_run(sandbox: Sandbox, kind: Kind, source: str) -> None:
    assert sandbox.check_syntax(source, kind) is None


# The brackets of these do not stay inside the wrapping that makes a function of them.
_BREAKING_OUT: list[tuple[Kind, str]] = [
    ("expression", ""),
    ("expression", "  \n"),
    ("expression", "// nothing"),
    ("expression", "1; 2"),
    ("expression", "1;"),
    ("expression", "1); evil("),
    ("expression", "1)}); evil(); (function(){return (1"),
    ("expression", "1)}),(function(){return (1"),
    ("expression", "1]}); evil(); (function(){return [1"),
    ("expression", "1 /*"),
    ("expression", "'open"),
    ("expression", "`open"),
    ("expression", "1,"),
    ("expression", ",1"),
    ("expression", "...v.list"),
    ("expression", "if (1) 2"),
    ("expression", "return 1"),
    ("expression", "await 1"),
    ("expression", "yield 1"),
    ("expression", "new.target]});(function(){return [1"),
    ("expression", "import('os')]"),
    ("code", "}"),
    ("code", "{"),
    ("code", "}); evil(); (async()=>{"),
    ("code", "}, async()=>{"),
    ("code", "} [x] = {"),
    ("code", "} n(){"),
    ("code", "} static { evil()"),
    ("code", "}} evil(); class A { m() {"),
    ("code", "}; { "),
    ("code", "}\n[x] = {"),
    ("code", "} , n() {"),
    ("code", "} = {"),
    ("code", "}) || (async() => {"),
    ("code", "/* open"),
    ("code", "import x from 'os'"),
    ("code", "export const a = 1"),
    ("code", "super.x"),
    ("code", "with (v) { return a }"),
]


@pytest.mark.parametrize(("kind", "source"), _BREAKING_OUT)
async def test_what_breaks_out_of_its_wrapping_is_a_syntax_error(sandbox: Sandbox, kind: Kind, source: str) -> None:
    message = message_of(sandbox, source, kind)
    assert message.startswith("SyntaxError: ")
    with pytest.raises(SandboxError, match="SyntaxError"):
        await (evaluate(sandbox, source) if kind == "expression" else program(sandbox, source))


def test_checking_never_runs_anything(sandbox: Sandbox) -> None:
    for kind, source in _BREAKING_OUT:
        looping = source.replace("evil()", "(() => { for (;;) {} })()").replace("evil(", "(() => { for (;;) {} })(")
        message = message_of(sandbox, looping, kind)
        assert "timeout" not in message  # a loop that ran would be stopped by the deadline


def test_a_text_too_long_is_refused_without_parsing(sandbox: Sandbox) -> None:
    assert sandbox.check_syntax("1" + " " * (8 * 1024 - 1), "expression") is None
    assert "more than 8192 bytes" in message_of(sandbox, "1" + " " * 8 * 1024, "expression")


def test_a_text_too_deep_is_an_error_and_the_next_check_works(sandbox: Sandbox) -> None:
    assert "SyntaxError" in message_of(sandbox, "[" * 30_000 + "]" * 30_000, "code")
    assert sandbox.check_syntax("1", "expression") is None


def test_lone_surrogates_are_text_like_any_other(sandbox: Sandbox) -> None:
    assert sandbox.check_syntax("'\ud800'", "expression") is None
