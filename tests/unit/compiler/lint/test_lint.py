"""The linter of durable functions: each mistake is found on its line, and what is right is not."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

from compiler.lint.lint import lint
from compiler.lint.rules import HINTS

ROOT = Path(__file__).parents[4]
HEAD = """\
import asyncio, contextlib, datetime as dt, os, random, secrets, subprocess, threading, time, uuid
from datetime import datetime
from pathlib import Path
from updates import add
import httpx, requests, sqlite3
import numpy as np
import weft
LIMITS = {"a": 1}
HOME = Path("/srv")

@weft.step
async def charge(order: str) -> str: return order
@weft.step
def total(a: int) -> int: return a
@weft.durable
async def other(order: str) -> str: return order

@weft.durable
async def flow(order: str, names: list[str], day: dt.date, kept: list = []) -> object:
"""

WRONG = {
    "durable_clock": [
        "time.time()",
        "datetime.now()",
        "dt.datetime.utcnow()",
        "dt.date.today()",
        "time.sleep(3)",
        "time.strftime('%d', time.localtime())",
        "[x for x in names if time.monotonic() > 3]",
    ],
    "durable_random": [
        "random.choice(names)",
        "random.Random()",
        "secrets.token_hex()",
        "np.random.rand()",
        "os.urandom(3)",
    ],
    "durable_uuid": ["str(uuid.uuid4())", "uuid.uuid1()"],
    "durable_io": [
        "open('a')",
        "Path('a').read_text()",
        "(HOME / order).exists()",
        "HOME.joinpath('x').write_text('x')",
        "requests.get('https://example.org')",
        "httpx.Client()",
        "subprocess.run(['ls'])",
        "sqlite3.connect('x')",
        "os.listdir()",
        "os.path.exists('x')",
        "await asyncio.open_connection('h', 1)",
        "input()",
    ],
    "durable_env": ["os.environ['HOME']", "os.environ.get('HOME')", "os.getenv('HOME')"],
    "durable_thread": [
        "threading.Thread(target=print)",
        "await asyncio.to_thread(print)",
        "asyncio.get_running_loop().run_in_executor(None, print)",
    ],
    "durable_set": [
        "for each in set(names): await charge(each)",
        "for each in {order, 'b'}: await charge(each)",
        "both = set(names) & {'b'}\nlist(both)",
        "[await charge(each) for each in frozenset(names)]",
        "', '.join({order, 'b'})",
        "left = set(names)\nleft.pop()",
        "done, open = await asyncio.wait([])\n[one.result() for one in done]",
        "await weft.gather(*{charge(order), charge('b')})",
        "await weft.gather(set(names), charge)",
    ],
    "durable_id": ["id(names)", "hash(order)"],
    "durable_global": [
        "LIMITS['b'] = 2",
        "LIMITS.update(b=2)",
        "global LIMITS\nLIMITS = {}",
        "kept.append(order)",
        "LIMITS['a'] += 1",
        "os.x = 3",
    ],
    "durable_swallow": [
        "try: await charge(order)\nexcept: pass",
        "try: await charge(order)\nexcept BaseException as error: print(error)",
        "try: await charge(order)\nexcept (ValueError, BaseException): return 1",
        "with contextlib.suppress(BaseException): await charge(order)",
        "try: await charge(order)\nfinally: return 1",
    ],
    "durable_unawaited": [
        "charge(order)",
        "total(3)",
        "other(order)",
        "weft.sleep(days=3)",
        "paid = charge(order)",
        "paid = total(3)\nreturn paid + 1",
        "if charge(order): return 1",
        "return f'{charge(order)}'",
        "return charge(order).upper()",
        "charge.with_options(timeout=3)(order)",
        "asked = await add.next()\nasked.answer(3)",
        "match order:\n    case weft.Ask() as asked: asked.refuse('no')",
        "child = await weft.start(other, order)\nchild.cancel()",
    ],
    "durable_finally": ["try: await charge(order)\nfinally: print('done')"],
}

RIGHT = [
    "weft.now().date() - day",
    "random.Random(3).choice(names)",
    "np.random.default_rng(3)",
    "uuid.uuid5(uuid.NAMESPACE_URL, order)",
    "dt.datetime.fromisoformat(order)",
    "time.gmtime(0)",
    "Path('a') / 'b'",
    "os.path.join('a', 'b')",
    "Path('a').with_suffix('.b').name",
    "order.replace('a', 'b')",
    "sorted(set(names))",
    "sorted(one.upper() for one in set(names))",
    "len({order}) + max({1, 2})",
    "for each in {1, 2}: await charge(str(each))",
    "for each in dict.fromkeys(names): await charge(each)",
    "order in set(names)",
    "unique = {one for one in set(names)}",
    "seen = {}\nseen[order] = 1\nseen.update(b=2)",
    "LIMITS['a']",
    "try: await charge(order)\nexcept Exception: pass",
    "try: await charge(order)\nexcept BaseException:\n    print('x')\n    raise",
    "try: int(order)\nexcept: pass",
    "lock = asyncio.Lock()\nawait lock.acquire()\ntry: await charge(order)\nfinally: lock.release()",
    "try: await charge(order)\nfinally: await charge('undo')",
    "one, two = await weft.gather(charge(order), weft.signal('x'))",
    "task = asyncio.create_task(charge(order))\nreturn await task",
    "paid = charge(order)\nreturn await paid",
    "calls = [charge(each) for each in names]\nreturn await asyncio.gather(*calls)",
    "return charge(order)",
    "id = 3\nprint(id)",
    "hash = len\nhash(names)",
    "print(order)",
    "async with weft.timeout(days=1): await charge(order)",
    "asked = await add.next()\nawait asked.answer(3)",
    "order.cancel()",
    "np.append([1], 2) + dt.add(1)",
    "raise subprocess.CalledProcessError(1, 'x')",
    "def inner(open): return open(3)\nreturn inner(len)",
]


def found(tmp_path: Path, body: str, head: str = HEAD) -> list[str]:
    file = tmp_path / "flow.py"
    file.write_text(head + indent(body, "    ") + "\n")
    return [one.code for one in lint({file: ()})]


@pytest.mark.parametrize(("code", "body"), [(code, body) for code, bodies in WRONG.items() for body in bodies])
def test_a_mistake_is_found(tmp_path: Path, code: str, body: str) -> None:
    assert found(tmp_path, body) == [code]


@pytest.mark.parametrize("body", RIGHT)
def test_what_is_right_is_not(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, body) == []


def test_a_line_can_permit_a_code_and_no_other(tmp_path: Path) -> None:
    assert found(tmp_path, "time.time()  # weft: ok durable_clock, for the log") == []
    assert found(tmp_path, "time.time()  # weft: ok durable_io, durable_clock") == []
    assert found(tmp_path, "time.time()  # weft: ok durable_io") == ["durable_clock"]
    assert found(tmp_path, "print(\n    time.time(),\n)  # weft: ok durable_clock") == ["durable_clock"]


def test_steps_and_plain_functions_that_nothing_calls_may_do_all_of_it(tmp_path: Path) -> None:
    source = "import time, weft\n@weft.step\nasync def a() -> float: return time.time()\ndef b(): return time.time()\n"
    assert found(tmp_path, "", source) == []


def test_a_durable_function_inside_of_a_function_is_found(tmp_path: Path) -> None:
    source = "import weft\ndef make():\n    @weft.durable\n    async def inner() -> int: return 1\n    return inner\n"
    assert found(tmp_path, "", source) == ["durable_closure"]


def test_it_follows_calls_in_the_package_three_deep_and_names_the_way(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("from .far import far\n")
    (package / "far.py").write_text(
        "import time\nfrom . import farther\ndef far(): return near()\n"
        "def near():\n    farther.first()\n    return time.time()\n"
    )
    (package / "farther.py").write_text(
        "import uuid\ndef first(): return second()\ndef second(): return uuid.uuid4()\n"
    )
    (package / "flow.py").write_text(
        "from weft import durable\nfrom shop import far as away\n\n"
        "@durable(name='x')\nasync def flow() -> None:\n    away()\n"
    )
    (one,) = lint({package / "flow.py": ()})
    assert (one.code, Path(one.file).name, one.line) == ("durable_clock", "far.py", 6)
    assert one.message == (
        "flow calls far (flow.py:6), which calls near (far.py:3): `time.time()` returns another time in each entry"
    )
    assert one.hint == HINTS["durable_clock"]


def test_a_function_that_is_passed_on_is_read(tmp_path: Path) -> None:
    body = "return await weft.gather(names, handle)\n"
    source = HEAD.replace(
        "@weft.durable\nasync def flow", "async def handle(one): return time.time()\n\n@weft.durable\nasync def flow"
    )
    assert found(tmp_path, body, source) == ["durable_clock"]


def test_a_value_of_another_file_is_changed_and_a_module_is_not(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text("CACHE = []\ndef add(n): return n\n")
    source = HEAD.replace("import weft\n", "import weft\nimport shared\nfrom shared import CACHE\n")
    assert found(tmp_path, "shared.add(3)", source) == []
    assert found(tmp_path, "CACHE.append(3)", source) == ["durable_global"]


def test_a_file_that_cannot_be_read_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("def (:")
    assert lint({tmp_path / "flow.py": (), tmp_path / "missing.py": ()}) == []


def test_the_page_about_it_lists_all_codes() -> None:
    page = (ROOT / "docs/reference/determinism.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(durable_\w+)`", page, re.M) == list(HINTS) == [*WRONG, "durable_closure"]


def test_no_durable_function_of_examples_docs_and_tests_has_one(tmp_path: Path) -> None:
    folders = ("examples", "benchmarks", "tests/support")
    sources = [path.read_text(encoding="utf-8") for name in folders for path in (ROOT / name).rglob("*.py")]
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        sources += re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    durable = [source for source in sources if "weft.durable" in source]
    assert durable
    for number, source in enumerate(durable):
        (tmp_path / f"flow{number}.py").write_text(source, encoding="utf-8")
    assert lint(dict.fromkeys(tmp_path.glob("*.py"), ())) == []
