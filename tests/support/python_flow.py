"""Files with workflow functions, for servers of tests."""

from __future__ import annotations

# Its step fails in line 5.
FAILING = """import weft


def helper(prices: dict[str, int]) -> int:
    return prices["missing"]


@weft.step
def price(name: str) -> int:
    return helper({name: 1})


@weft.workflow
async def order(name: str = "a"):
    return await price(name)
"""
