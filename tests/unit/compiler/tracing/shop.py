"""Steps for the tests of tracing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.tracing.steps import step


@dataclass
class Item:
    name: str
    price: float


@dataclass
class Order:
    customer: str
    items: list[Item]


@step(effect="read", retries=2)
def load(order: str) -> Order:
    return Order(order, [Item("tea", 2.5)])


@step(effect="read")
async def load_later(order: str) -> Order:
    return Order(order, [Item("tea", 2.5)])


@step(effect="none")
def price(item: Item, factor: int = 1) -> float:
    return item.price * factor


@step(effect="none")
def total(prices: list[Any], note: str = "") -> float:
    return float(sum(prices))


@step
def pay(amount: float) -> str:
    return f"paid {amount}"


@step
def mail(text: str) -> str:
    return text
