"""How functions of topics become methods of the store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from executor.kernel.store.statements import Readers, Tx
from executor.kernel.store.topics.methods import read, write
from tests.support.model_store.store import ModelStore


class Direct:
    """A writer that needs no file, and readers that find what they are asked for."""

    def __init__(self) -> None:
        self.submitted: list[tuple[str, tuple[Any, ...]]] = []

    async def submit(self, change: Any, *args: Any) -> Any:
        self.submitted.append((change.__name__, args))
        return change(self, *args)


def change(tx: Tx, a: int, b: str = "b", *, c: bool = False) -> tuple[int, str, bool]:
    return a, b, c


def plain(tx: Tx, a: int, b: str = "b") -> tuple[int, str]:
    return a, b


async def query(readers: Readers, a: int, b: str = "b") -> tuple[Readers, int, str]:
    return readers, a, b


class Small(ModelStore):
    plain = write(plain)
    query = read(query)

    def __init__(self) -> None:
        self.direct = Direct()
        self._writer: Any = self.direct
        self._readers: Any = self.direct


async def test_a_change_is_submitted_with_positional_arguments() -> None:
    store = Small()
    assert await store.plain(1) == (1, "b")
    assert await store.plain(2, "x") == (2, "x")
    assert await store.plain(b="y", a=3) == (3, "y")
    assert await store.plain(4, b="z") == (4, "z")
    assert store.direct.submitted == [("plain", (1,)), ("plain", (2, "x")), ("plain", (3, "y")), ("plain", (4, "z"))]
    with pytest.raises(TypeError):
        await store.plain(1, d=2)  # type: ignore[call-arg]
    assert len(store.direct.submitted) == 4


def test_a_change_has_no_parameters_that_are_keywords_only() -> None:
    with pytest.raises(AssertionError):
        write(change)


async def test_a_query_is_handed_the_readers() -> None:
    store = Small()
    readers, *values = await store.query(1, b="x")
    assert readers is store._readers and values == [1, "x"]


def test_methods_have_the_names_of_their_functions() -> None:
    assert (Small.plain.__name__, Small.query.__qualname__) == ("plain", "query")


def test_the_reference_has_each_rule_that_code_and_tests_name() -> None:
    reference = Path("docs/reference/store.md").read_text(encoding="utf-8")
    names = {name.rstrip(".").lower() for name in re.findall(r"^- \*\*(.+?)\*\*", reference, re.MULTILINE)}
    roots = ("executor", "tests")
    paths = (path for root in roots for path in Path(root).rglob("*") if path.suffix in (".py", ".md"))
    cited = {
        " ".join(name.split()): path
        for path in paths
        for name in re.findall(r'[Rr]ule "([a-z ,\n]+)"', path.read_text(encoding="utf-8"))
    }
    assert {name: path for name, path in cited.items() if name not in names} == {}
    assert cited
