"""What the five workflows do outside, the same for every system. Each call leaves a mark in COMPARE_FOLDER, and the one
that COMPARE_HANG names does not return, so that `check` can kill the process in it and count calls."""

import os
import time
from pathlib import Path

FOLDER = Path(os.environ.get("COMPARE_FOLDER", "."))


def mark(name: str) -> int:
    """The number of this call."""
    with (FOLDER / f"{name}.calls").open("a+") as file:
        file.write("x")
        file.flush()
        number = file.tell()
    if os.environ.get("COMPARE_HANG") == name:
        time.sleep(600)
    return number


def calls(folder: Path, name: str) -> int:
    path = folder / f"{name}.calls"
    return path.stat().st_size if path.exists() else 0


def fetch() -> str:
    if mark("fetch") == 1:
        raise ConnectionError("the first call fails")
    return "one two three"


def parse(text: str) -> list[str]:
    mark("parse")
    return text.split()


def store(words: list[str]) -> int:
    mark("store")
    return len(words)


def count(word: str) -> int:
    mark(f"count-{word}")
    return len(word)


def total(counts: list[int]) -> int:
    mark("total")
    return sum(counts)


def draft() -> str:
    mark("draft")
    return "a text"


def publish(text: str) -> str:
    mark("publish")
    return f"published {text}"


def before() -> str:
    mark("before")
    return "before"


def after(text: str) -> str:
    mark("after")
    return f"{text} and after"


def by_card(amount: int) -> str:
    mark("by_card")
    raise ValueError("the card was declined")


def by_invoice(amount: int) -> str:
    mark("by_invoice")
    return f"invoice of {amount}"


def apologise(message: str) -> str:
    mark("apologise")
    return "sorry"
