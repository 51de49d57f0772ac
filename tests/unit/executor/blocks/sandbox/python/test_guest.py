import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from executor.blocks.sandbox import Limits
from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound
from tests.unit.executor.blocks.sandbox.python.run import NOW_MS, program
from tests.unit.executor.blocks.sandbox.run import Apart


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("return 1", 1),
        ("", None),
        ("return", None),
        ("a = __v['n']\nreturn a * 2", 42),
        ("return f'{__t[\"n\"]}!'", "21!"),
        ("def f(x):\n    return x + 1\nreturn [f(x) for x in range(3)]", [1, 2, 3]),
        ("x = '''a\n  b\n'''\nreturn x", "a\n  b\n"),
        ("if True:\n\treturn 'tab'", "tab"),
        ("return (1, 2), {'k': None, 3: True}", [[1, 2], {"k": None, "3": True}]),
        ("from datetime import date, datetime, timedelta, timezone\n"
         "return [datetime.now(timezone.utc), date.today() + timedelta(days=1), datetime(2024, 2, 29) - timedelta(1)]",
         ["2023-11-14T22:13:20.123000+00:00", "2023-11-15", "2024-02-28T00:00:00"]),
        ("from datetime import datetime\nreturn datetime.strptime('3.11.2026', '%d.%m.%Y').strftime('%A')", "Tuesday"),
        ("import datetime\nreturn isinstance(datetime.datetime.now(), datetime.date)", True),
        ("import time\nreturn [time.time(), time.strftime('%Y-%m-%d'), time.monotonic_ns()]",
         [NOW_MS / 1000, "2023-11-14", NOW_MS * 1_000_000]),
        ("import re, json, math, base64\nreturn [re.sub('a', 'b', 'aa'), json.loads('[1]'), math.gcd(4, 6), "
         "base64.b64encode(b'x').decode()]", ["bb", [1], 2, "eA=="]),
        ("import hashlib\nreturn hashlib.sha256(b'abc').hexdigest()[:8]", "ba7816bf"),
        ("from decimal import Decimal\nreturn str(Decimal('0.1') + Decimal('0.2'))", "0.3"),
        ("import statistics, collections\nreturn [statistics.mean([1, 2]), collections.Counter('aab')]",
         [1.5, {"a": 2, "b": 1}]),
        ("import csv, io\nreturn list(csv.DictReader(io.StringIO('a,b\\n1,2')))", [{"a": "1", "b": "2"}]),
        ("from urllib.parse import urlencode\nreturn urlencode({'q': 'a b'})", "q=a+b"),
        ("from dataclasses import dataclass, asdict\n@dataclass\nclass A:\n    n: int = 1\nreturn asdict(A())",
         {"n": 1}),
        ("match {'a': 1}:\n    case {'a': n}:\n        return n", 1),
        ("import xml.etree.ElementTree as e\nreturn e.fromstring('<a>x</a>').text", "x"),
        ("return '\\ud800'", "\ud800"),
        ("return 2 ** 70", 2**70),
    ],
)  # fmt: skip
async def test_a_program_returns_json(sandbox: Sandbox, source: str, result: Any) -> None:
    assert await program(sandbox, source, n=21) == (result, "")


async def test_what_is_printed_is_captured(sandbox: Sandbox) -> None:
    source = "import sys, logging\nprint('a', 1)\nprint('b', file=sys.stderr)\nctx.log('c')\nlogging.warning('d')"
    assert await program(sandbox, source) == (None, "a 1\nb\nc\nWARNING:root:d\n")


async def test_what_is_printed_is_cut_at_its_bound(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "limits", replace(Limits(), console=10))
    assert await program(sandbox, "print('123456789')") == (None, "123456789\n")
    assert await program(sandbox, "print('123456789012')\nprint('more')") == (None, "1234567890\n[output cut]\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n\nraise ValueError('no')", "ValueError: no (line 3)"),
        ("def f():\n    return 1 / 0\n\nf()", "ZeroDivisionError: division by zero (line 2)"),
        ("import json\njson.loads('x')", "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (line 2)"),
        ("x = 1\nreturn 1 +", "SyntaxError: invalid syntax (line 2)"),
        ("def f(:\n    pass", "SyntaxError: invalid syntax (line 1)"),
        ("if True:\nreturn 1", "IndentationError: expected an indented block after 'if' statement on line 1 (line 2)"),
        ("return await f()", "SyntaxError: 'await' outside async function (line 1)"),
        ("return {1}", "TypeError: the result has a set, which is not JSON"),
        ("yield 1", "TypeError: the result has a generator, which is not JSON"),
        ("return float('nan')", "ValueError: Out of range float values are not JSON compliant"),
        ("import numpy", "ModuleNotFoundError: the module 'numpy' does not exist in the sandbox (line 1)"),
        ("open('x')", "Refused: a file does not exist in the sandbox (line 1)"),
        ("import time\ntime.sleep(1)", "time.sleep does not exist in the sandbox; use a Wait block (line 2)"),
        ("import os\nos.listdir()", "os.listdir does not exist in the sandbox (line 2)"),
        ("import posix\nposix.listdir()", "asked for something that does not exist in the sandbox"),
        ("def f(): return f()\nf()", "RecursionError: maximum recursion depth exceeded (line 1)"),
        ("return eval('(' * 500 + ')' * 500)", "RecursionError: it is nested too deeply"),
        ("return 'x' * (1 << 20)", "the result is too large"),
        ("x = []\nfor _ in range(70): x = [x]\nreturn x", "nested too deeply"),
    ],
)
async def test_a_program_that_fails_says_why_and_where(sandbox: Sandbox, source: str, message: str) -> None:
    with pytest.raises(SandboxError) as caught:
        await program(sandbox, source)
    assert message in str(caught.value)
    assert (caught.value.code, caught.value.retryable) == ("code_failed", False)


async def test_what_was_printed_before_a_failure_is_recorded(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await program(sandbox, "print('here')\n1 / 0")
    assert caught.value.extra["stdout"] == "here\n"


async def test_too_much_memory_and_too_long(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="out of memory") as caught:
        await program(sandbox, "return 'x' * 10 ** 9")
    assert caught.value.code == "code_memory"
    with pytest.raises(SandboxError, match="stopped after 200 ms") as caught:
        await program(sandbox, "while True: pass", timeout_ms=200)
    assert caught.value.code == "code_timeout"


async def test_what_is_random_is_determined_by_the_seed(sandbox: Sandbox) -> None:
    source = (
        "import os, random, secrets, uuid\n"
        "return [random.random(), random.Random().random(), str(uuid.uuid4()), secrets.token_hex(4), "
        "os.urandom(2).hex()]"
    )
    first, second = await program(sandbox, source), await program(sandbox, source)
    assert first == second
    assert len(set(map(str, first[0]))) == 5
    other = await sandbox.run_code(Bound(source, {}), now_ms=NOW_MS, seed="other", timeout_ms=30_000, language="python")
    assert not set(map(str, other[0])) & set(map(str, first[0]))


@pytest.mark.parametrize(
    ("source", "message"),
    [("return 1", None), ("return 1 +", "SyntaxError: invalid syntax (line 1)"), ("(" * 5000, "(stack)")],
)
async def test_syntax_is_checked_and_nothing_runs(sandbox: Sandbox, source: str, message: str | None) -> None:
    found = await asyncio.to_thread(sandbox.check_syntax, source, "python")
    assert found == message or (message is not None and message in str(found)) or "nested" in str(found)


async def test_the_same_in_another_process(sandbox: Sandbox) -> None:
    apart = Apart(threads=1)
    try:
        source = "print('x')\nimport random\nreturn [__v['n'], random.random()]"
        assert await program(apart, source, n=1) == await program(sandbox, source, n=1)
        with pytest.raises(SandboxError, match=r"ZeroDivisionError: division by zero \(line 1\)"):
            await program(apart, "1 / 0")
    finally:
        apart.close()
