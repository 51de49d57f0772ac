"""References in JavaScript are bound, never pasted: whatever a value is, it stays a value."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compiler.javascript import rewrite
from executor.blocks.sandbox.sandbox import Sandbox
from executor.kernel.values.payload import Bound, render
from tests.fuzz.budget import examples
from tests.support.cost import computes_within

pytestmark = pytest.mark.proof

KNOWN = {"x.v", "y"}
strings = st.text(st.characters(), max_size=60).map(
    lambda text: str(joined(text))
)  # halves of surrogate pairs included
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# Source with `<x.v>`, and what it is for the text s.
FORMS: dict[str, Callable[[str], Any]] = {
    "<x.v>": lambda s: s,
    "(<x.v>)": lambda s: s,
    "[<x.v>][0]": lambda s: s,
    "({k: <x.v>}).k": lambda s: s,
    "true ? <x.v> : 1": lambda s: s,
    "typeof<x.v>": lambda s: "string",
    "'<x.v>'": lambda s: s,
    '"<x.v>"': lambda s: s,
    "`<x.v>`": lambda s: s,
    "'a<x.v>b'": lambda s: f"a{s}b",
    "\"it's <x.v>, isn't it\"": lambda s: f"it's {s}, isn't it",
    "'\\'<x.v>\\''": lambda s: f"'{s}'",
    "'<x.v>' + \"<x.v>\"": lambda s: s + s,
    "`${'<x.v>'}`": lambda s: s,
    "`${<x.v>}`": lambda s: s,
    "`a${`b<x.v>`}c`": lambda s: f"ab{s}c",
    "`\\`<x.v>\\``": lambda s: f"`{s}`",
    "['<x.v>', <x.v>].join('|')": lambda s: f"{s}|{s}",
    "'<x.v><x.v>'": lambda s: s + s,
    "<x.v> + '</x.v>'": lambda s: f"{s}</x.v>",
    "/* <x.v> */ <x.v> // <x.v>": lambda s: s,
    "'<x.v>'.length === <x.v>.length": lambda s: True,
    "((f) => f('<x.v>'))((t) => t)": lambda s: s,
    "'\\\\<x.v>'": lambda s: f"\\{s}",
    "'\\<x.v>'": lambda s: "<x.v>",
}
HOSTILE = [
    "'",
    '"',
    "`",
    "\\",
    "${y}",
    "<x.v>",
    "'+(()=>{while(1){}})()+'",
    "*/",
    "//",
    "\u2028",
    "\x00",
    "\ud800",
    "</script>",
]


def joined(text: Any) -> Any:
    """Two halves that meet are one character, as in JavaScript."""
    if not isinstance(text, str):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def evaluate(runner: asyncio.Runner, sandbox: Sandbox, source: str, value: Any) -> Any:
    rewritten = rewrite(source, KNOWN)
    assert set(rewritten.values) | set(rewritten.texts) <= {"x.v"}
    bound = Bound(rewritten.source, {"x.v": value}, {"x.v": value if isinstance(value, str) else render(value)})
    (result,) = runner.run(sandbox.evaluate([bound], now_ms=0, seed="s"))
    return result


def test_hostile_strings_stay_strings(sandbox: Sandbox, runner: asyncio.Runner) -> None:
    for source, expected in FORMS.items():
        for text in (*HOSTILE, "".join(HOSTILE)):
            assert evaluate(runner, sandbox, source, text) == expected(text), (source, text)


@examples(250)
@given(source=st.sampled_from(list(FORMS)), text=strings)
@example(source="'<x.v>'", text="'); while(1){}//")
def test_every_string_stays_itself(sandbox: Sandbox, runner: asyncio.Runner, source: str, text: str) -> None:
    assert evaluate(runner, sandbox, source, text) == joined(FORMS[source](text))


@examples(100)
@given(value=json_values)
def test_every_value_keeps_its_type(sandbox: Sandbox, runner: asyncio.Runner, value: Any) -> None:
    assert evaluate(runner, sandbox, "<x.v>", value) == value
    assert evaluate(runner, sandbox, "'<x.v>'", value) == (value if isinstance(value, str) else render(value))


@examples(200)
@given(text=st.text(alphabet="<x.v>'\"`\\${}/*[]()ay =+\n?!", max_size=80))
def test_source_of_any_kind_is_rewritten_in_time(text: str) -> None:
    """What is no reference stays as it is, and nothing is read that is not known."""
    with computes_within(1.0):
        rewritten = rewrite(text * 20, KNOWN)
    assert set(rewritten.values) | set(rewritten.texts) <= KNOWN
    assert rewrite(text, ()).source == text


@examples(100)
@given(before=st.text(max_size=10), after=st.text(max_size=10), text=strings)
def test_a_quoted_text_is_its_parts(
    sandbox: Sandbox, runner: asyncio.Runner, before: str, after: str, text: str
) -> None:
    """Whatever the author wrote around the reference, JSON's way of quoting included."""
    source = json.dumps(before)[:-1] + "<x.v>" + json.dumps(after)[1:]
    if "<" in before + after or "${" in before + after or before.endswith("\\"):
        return
    assert evaluate(runner, sandbox, source, text) == joined(before + text + after)
