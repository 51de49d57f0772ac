"""Ways to spoil a document: in its structure, then in its bytes. Each takes what it needs from `draw`."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.documents import Document, Draw, documents

Place = tuple[Any, Any]  # a container of JSON and a key of it
CONFUSED = str.maketrans({"a": "а", "e": "е", "o": "ο", "s": "ѕ", "-": "‐", "_": "＿", "1": "１", ".": "․", "/": "∕"})
ODD_NAMES = (
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "",
    " ",
    "a/b~c",
    "\u202e",
    "\x00",
    "0",
)
ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    10**9,
    1e300,
    2**63,
    2**64 - 1,
    "",
    "1000000000",
    "<",
    "<<<>>>",
    "${",
    "<start.x ?? >",
    '<start["',
    "<loop.index>",
    "<parallel.item.x[999999999]>",
    "${HOME}",
    "`${",
    "'\\",
    "1); while(1){}//",
    "}{",
    "\ufeff\u2028\x00",
    "$.",
    "$ref",
    {"$ref": "$.nowhere[0]"},
    {"$ref": "#"},
    {"__proto__": {"x": 1}},
    [],
    {},
    [[[[[[]]]]]],
    "x" * 2_000,
    {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
]


@st.composite
def spoiled(draw: Draw) -> bytes:
    """A document with one to four mistakes, as bytes that are JSON nearly always."""
    document = copy.deepcopy(draw(documents()))
    for _ in range(draw(st.integers(1, 4))):
        draw(st.sampled_from(MUTATIONS))(draw, document)
    data = json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 9:
        data = draw(st.sampled_from(BYTE_MUTATIONS))(draw, data)
    return data


def places(value: Any) -> list[Place]:
    """Every member and item, however deep."""
    found: list[Place] = []
    stack = [value]
    while stack:
        at = stack.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            found.append((at, key))
            stack.append(at[key])
    return found


def _place(draw: Draw, document: Document) -> Place | None:
    found = places(document)
    return draw(st.sampled_from(found)) if found else None


def drop(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None:
        del place[0][place[1]]


def duplicate(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None:
        holder, key = place
        if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[f"{key}{draw(st.sampled_from(['2', ' ', '.', '/']))}"] = copy.deepcopy(holder[key])


def replace(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None:
        place[0][place[1]] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))


def rename(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None and isinstance(place[0], dict):
        place[0][draw(st.sampled_from(ODD_NAMES))] = place[0].pop(place[1])


def confuse(draw: Draw, document: Document) -> None:
    """Letters that look the same."""
    place = _place(draw, document)
    if place is not None and isinstance(place[0][place[1]], str):
        place[0][place[1]] = place[0][place[1]].translate(CONFUSED)


def surround(draw: Draw, document: Document) -> None:
    """Nest deeper than anybody reads."""
    place = _place(draw, document)
    if place is not None:
        for _ in range(draw(st.sampled_from([1, 10, 63, 64, 65, 200]))):
            place[0][place[1]] = {"in": place[0][place[1]]} if draw(st.just(True)) else []


def grow(draw: Draw, document: Document) -> None:
    """A huge count where a container has one."""
    params = [b["params"] for b in _blocks(document) if b.get("type") in ("loop", "parallel") and "params" in b]
    params = [p for p in params if isinstance(p, dict)]
    if params:
        field = draw(st.sampled_from(["count", "max", "items", "concurrency", "mode"]))
        value = draw(st.sampled_from([10**9, -1, "10" * 20, 1.5, 10**18, [0] * 2_000, "each", None, "<workflow.seen>"]))
        draw(st.sampled_from(params))[field] = value


def retarget(draw: Draw, document: Document) -> None:
    edges = _edges(document)
    if edges:
        field = draw(st.sampled_from(["source", "target", "handle"]))
        names = [*_ids(document), "nowhere", "body", "error", "out", "", "__proto__"]
        draw(st.sampled_from(edges))[field] = draw(st.sampled_from(names))


def connect(draw: Draw, document: Document) -> None:
    """One edge more: cycles, borders, edges to the start."""
    ids = _ids(document)
    if ids and isinstance(document.get("edges"), list):
        edge = {"source": draw(st.sampled_from(ids)), "target": draw(st.sampled_from(ids))}
        document["edges"].append(edge)


def move(draw: Draw, document: Document) -> None:
    """Into another container, or into what is none."""
    blocks = _blocks(document)
    if blocks:
        draw(st.sampled_from(blocks))["parent"] = draw(st.sampled_from([*_ids(document), "", None, 7]))


def retype(draw: Draw, document: Document) -> None:
    blocks = _blocks(document)
    if blocks:
        types = ["start", "loop", "parallel", "set", "note", "break", "response", "http", "nope", "loop:start", ""]
        draw(st.sampled_from(blocks))["type"] = draw(st.sampled_from(types))


def turn_off(draw: Draw, document: Document) -> None:
    blocks = _blocks(document)
    if blocks:
        draw(st.sampled_from(blocks))["enabled"] = draw(st.sampled_from([False, True, "no"]))


def _ids(document: Document) -> list[str]:
    blocks = document.get("blocks")
    return list(blocks) if isinstance(blocks, dict) else []


def _blocks(document: Document) -> list[Any]:
    blocks = document.get("blocks")
    return [b for b in blocks.values() if isinstance(b, dict)] if isinstance(blocks, dict) else []


def _edges(document: Document) -> list[Any]:
    edges = document.get("edges")
    return [e for e in edges if isinstance(e, dict)] if isinstance(edges, list) else []


MUTATIONS: list[Callable[[Draw, Document], None]] = [
    drop,
    duplicate,
    replace,
    replace,
    rename,
    confuse,
    surround,
    grow,
    retarget,
    connect,
    connect,
    move,
    retype,
    turn_off,
]


def cut(draw: Draw, data: bytes) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def insert(draw: Draw, data: bytes) -> bytes:
    """Half of a surrogate pair, numbers that are none, a second document, raw bytes."""
    at = draw(st.integers(0, len(data)))
    odd = [
        b'"\\ud800"',
        b"\\ud800",
        b"\xed\xa0\x80",
        b"NaN",
        b"1e999",
        b"-",
        b"\x00",
        b"\xff",
        b"{}",
        b",",
        b'"',
        b"[" * 1_100,
    ]
    piece: bytes = draw(st.sampled_from(odd))
    return data[:at] + piece + data[at:]


def flip(draw: Draw, data: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(data) - 1)))
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


BYTE_MUTATIONS: list[Callable[[Draw, bytes], bytes]] = [cut, insert, flip]
