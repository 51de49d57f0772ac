"""Documents of a file and what people have drawn of them."""

from __future__ import annotations

from server.dev.canvas import with_places


def test_blocks_stay_where_people_have_put_them() -> None:
    document = {
        "blocks": {"a": {"type": "set"}, "b": {"type": "set"}, "c": {"type": "note", "at": [1, 1]}},
        "edges": [],
    }
    drawn = {
        "blocks": {
            "a": {"type": "wait", "at": [272, 0], "size": [300, 200], "name": "Renamed"},
            "c": {"type": "note", "at": [9, 9]},
            "gone": {"type": "set", "at": [5, 5]},
        },
        "notes": [{"text": "read this"}],
    }
    assert with_places(document, drawn) == {
        "blocks": {
            "a": {"type": "set", "at": [272, 0], "size": [300, 200]},
            "b": {"type": "set"},
            "c": {"type": "note", "at": [1, 1]},
        },
        "edges": [],
        "notes": [{"text": "read this"}],
    }
    assert with_places(document, {"blocks": {}}) == document
