"""Ways to spoil a document: in its structure, then in its bytes. Each takes what it needs from `draw`."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.documents import documents
from tests.fuzz.nonsense import FOR, ODD_NAMES, ODD_VALUES, WAYS
from tests.fuzz.params import PARAMS, Document, Draw, pick

Place = tuple[Any, Any]  # a container of JSON and a key of it
CONFUSED = str.maketrans({"a": "а", "e": "е", "o": "ο", "s": "ѕ", "-": "‐", "_": "＿", "1": "１", ".": "․", "/": "∕"})


@st.composite
def spoiled(draw: Draw) -> bytes:
    """A document with one to four mistakes, as bytes that are JSON nearly always."""
    document = copy.deepcopy(draw(documents()))
    for _ in range(draw(st.integers(1, 4))):
        pick(draw, MUTATIONS)(draw, document)
    data = json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 9:
        data = pick(draw, BYTE_MUTATIONS)(draw, data)
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
    return pick(draw, found) if found else None


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
            holder[f"{key}{pick(draw, ['2', ' ', '.', '/'])}"] = copy.deepcopy(holder[key])


def replace(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None:
        place[0][place[1]] = copy.deepcopy(pick(draw, ODD_VALUES))


def rename(draw: Draw, document: Document) -> None:
    place = _place(draw, document)
    if place is not None and isinstance(place[0], dict):
        place[0][pick(draw, ODD_NAMES)] = place[0].pop(place[1])


def confuse(draw: Draw, document: Document) -> None:
    """Letters that look the same."""
    place = _place(draw, document)
    if place is not None and isinstance(place[0][place[1]], str):
        place[0][place[1]] = place[0][place[1]].translate(CONFUSED)


def surround(draw: Draw, document: Document) -> None:
    """Nest deeper than anybody reads."""
    place = _place(draw, document)
    if place is not None:
        for _ in range(pick(draw, [1, 10, 63, 64, 65, 200])):
            place[0][place[1]] = {"in": place[0][place[1]]}


def talk_nonsense(draw: Draw, document: Document) -> None:
    """What its own field should not have: times that never come, patterns that take for ever, mail to everybody."""
    found: dict[str, list[Place]] = {}
    for holder, key in places(document):
        if key in FOR:
            found.setdefault(key, []).append((holder, key))
    if found:  # first which field: there are many names, and seldom a time zone
        holder, key = pick(draw, found[pick(draw, sorted(found))])
        holder[key] = copy.deepcopy(pick(draw, FOR[key]))


def refer(draw: Draw, document: Document) -> None:
    """A reference where a value stood; in params it fits everywhere."""
    place = _place(draw, document)
    if place is not None:
        place[0][place[1]] = pick(draw, ["<start>", "<input.n>", "<unknown.x>", "${KEY}", {"$ref": "$.seen"}])


def plant(draw: Draw, document: Document) -> None:
    """A field that was not there, with nonsense in it."""
    way = pick(draw, WAYS).split("/")
    holder = pick(draw, _blocks(document) or [{}])
    for step in way[:-1]:
        if not isinstance(holder.get(step), dict):
            holder[step] = {}
        holder = holder[step]
    holder[way[-1]] = copy.deepcopy(pick(draw, FOR[way[-1]]))


def start_otherwise(draw: Draw, document: Document) -> None:
    """Other triggers, and many of them."""
    blocks = document.get("blocks")
    if isinstance(blocks, dict):
        for n in range(pick(draw, [1, 2, 60])):
            params = {"schedule": {"cron": f"{n} {n % 24} * * *"}, "webhook": {"auth": "token"}, "start": {}}
            kind = pick(draw, [*params])
            blocks[f"{kind}-{n}"] = {"type": kind, "params": params[kind]}


def retarget(draw: Draw, document: Document) -> None:
    edges = _edges(document)
    if edges:
        field = pick(draw, ["source", "target", "handle"])
        names = [*_ids(document), "nowhere", "body", "error", "out", "", "__proto__"]
        pick(draw, edges)[field] = pick(draw, names)


def connect(draw: Draw, document: Document) -> None:
    """One edge more: cycles, borders, edges to the start."""
    ids = _ids(document)
    if ids and isinstance(document.get("edges"), list):
        edge = {"source": pick(draw, ids), "target": pick(draw, ids)}
        document["edges"].append(edge)


def move(draw: Draw, document: Document) -> None:
    """Into another container, or into what is none."""
    blocks = _blocks(document)
    if blocks:
        pick(draw, blocks)["parent"] = pick(draw, [*_ids(document), "", None, 7])


def retype(draw: Draw, document: Document) -> None:
    blocks = _blocks(document)
    if blocks:
        types = [*PARAMS, "nope", "loop:start", ""]
        pick(draw, blocks)["type"] = pick(draw, types)


def turn_off(draw: Draw, document: Document) -> None:
    blocks = _blocks(document)
    if blocks:
        pick(draw, blocks)["enabled"] = pick(draw, [False, True, "no"])


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
    talk_nonsense,
    talk_nonsense,
    talk_nonsense,
    refer,
    plant,
    start_otherwise,
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
    piece: bytes = pick(draw, odd)
    return data[:at] + piece + data[at:]


def flip(draw: Draw, data: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(data) - 1)))
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


def dig(draw: Draw, data: bytes) -> bytes:
    """A value nested ten thousand levels deep, where another one stood or a new member could be."""
    found = list(_VALUE.finditer(data))
    deep = b"[" * 10_000 + b"]" * 10_000
    if not found:
        return deep
    value = pick(draw, found)
    return data[: value.start()] + deep + data[value.end() :]


BYTE_MUTATIONS: list[Callable[[Draw, bytes], bytes]] = [cut, insert, flip, dig]
_VALUE = re.compile(rb"(?<=: )(?:\d+|null|true|false|\"[^\"\\]*\")")
