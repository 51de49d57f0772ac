"""The block type `word_count`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec

import weft


@dataclass
class Result:
    words: int
    longest: str


@weft.block(type="word_count", category="data", effect="none", sentence="Count the words of {text}")
def word_count(text: str, ctx: weft.StepContext, shortest: Annotated[int, msgspec.Meta(ge=1)] = 1) -> Result:
    """Counts the words of a text.

    Args:
        text: any text
        shortest: words with fewer letters do not count
    """
    words = [word for word in text.split() if len(word) >= shortest]
    ctx.log(len(words), "words")
    return Result(len(words), max(words, key=len, default=""))
