"""The examples that come with weft: documents to open a copy of.

One rule for where they lie: a wheel has them in this package (`server/examples`), a checkout beside it (`examples`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson
from starlette.responses import Response

from server.http.call import Call
from server.http.response import json_response
from server.http.table import RouteSpec
from server.wire.about import Example, Examples

PACKAGE = Path(__file__).parents[1]
# What to open first: something to answer, something that survives a crash, then one idea at a time. Others follow by
# name.
ORDER = (
    "expense-approval",
    "durable-demo",
    "error-handling",
    "review-loop",
    "parallel-fanout",
    "nested",
    "child-run",
    "daily-report",
    "signed-orders",
)


async def examples(call: Call) -> Response:
    return json_response(packaged_examples())


@cache
def packaged_examples() -> Examples:
    """In the order of ORDER. They do not change while the server runs."""
    return Examples(read_examples(folder(PACKAGE)))


def folder(package: Path) -> Path:
    inside = package / "examples"
    return inside if inside.is_dir() else package.parent / "examples"


def read_examples(folder: Path) -> list[Example]:
    found = []
    for path in sorted(folder.glob("*.json"), key=_place):
        document = orjson.loads(path.read_bytes())
        title = path.stem.replace("-", " ").capitalize()
        found.append(Example(path.stem, title, document.get("description", ""), document))
    return found


def _place(path: Path) -> tuple[int, str]:
    return (ORDER.index(path.stem) if path.stem in ORDER else len(ORDER), path.stem)


TABLE = (RouteSpec("GET", "/api/examples", examples, "Example workflows", "workflows", answer=Examples),)
