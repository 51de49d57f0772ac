"""The hash of the code of a durable function: what changes it, and what does not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from compiler.tracing.durable import DurableFunction

FLOW = '''
from dataclasses import dataclass
import weft, prices
from prices import TAX

@dataclass
class Parcel:
    """A box that is delivered."""
    weight: int

@weft.step(effect="read")
async def find(order: str) -> int:
    """Find it."""
    return 1

def total(n: int) -> float:
    """Sum it up."""
    return n * TAX + prices.shipping(n)

@weft.durable
async def order(order: str) -> float:
    """Order it."""
    found: int = await find(order)
    Parcel(found)
    return total(found)
'''
PRICES = """
TAX = 0.2
def shipping(n): return n + FIXED
FIXED = 3
UNUSED = 1
"""
Code = Callable[[str, str], str]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(flow: str, prices: str) -> str:
        for name, text in (("flow", flow), ("prices", prices)):
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        invalidate_caches()
        made: DurableFunction[..., object] = import_module("flow").order
        return made.code

    yield load
    for name in ("flow", "prices"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total(found)", "total(found) + 1"),
        ("n * TAX", "n / TAX"),
        ("weight: int", "weight: float"),
        ('effect="read"', 'effect="none"'),
        ("find(order: str)", "find(order: str, more: int = 0)"),
        ("find(order: str) -> int", "find(order: str) -> float"),
        ("TAX = 0.2", "TAX = 0.3"),
        ("FIXED = 3", "FIXED = 4"),
        ("return n + FIXED", "return n - FIXED"),
    ],
)
def test_what_changes_it(code: Code, old: str, new: str) -> None:
    flow, prices = FLOW.replace(old, new), PRICES.replace(old, new)
    assert (flow, prices) != (FLOW, PRICES)
    assert code(flow, prices) != code(FLOW, PRICES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Order it."""', '"""Order it,\n    all of it."""'),
        ('    """Sum it up."""\n', "    # Sums it up.\n"),
        ("found: int = ", "found = "),
        ("total(n: int) -> float", "total(n)"),
        ("return 1", "return 2"),
        ("UNUSED = 1", "UNUSED = 2"),
        ("@weft.durable", '@weft.durable(settings={"timeout_s": 60})'),
        ("@weft.step(effect=", "@weft.step(retries=3, effect="),
        ("\n\n", "\n\n\n"),
    ],
)
def test_what_does_not(code: Code, old: str, new: str) -> None:
    flow, prices = FLOW.replace(old, new), PRICES.replace(old, new)
    assert (flow, prices) != (FLOW, PRICES)
    assert code(flow, prices) == code(FLOW, PRICES)
