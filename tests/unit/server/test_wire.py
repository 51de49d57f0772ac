from __future__ import annotations

import orjson

from executor.store.base import Record
from server.sse import FrameCache
from server.wire import encode_record


def test_a_record_as_an_event() -> None:
    record = Record(
        7, 1_700_000_000_123, "node.succeeded", "send:end", "review#5/fan[2]", 2, b'{"route":"out"}', b'{"n":1}'
    )
    assert orjson.loads(encode_record("r", record)) == {
        "run": "r",
        "seq": 7,
        "at": 1_700_000_000_123,
        "type": "node.succeeded",
        "node": "send:end",
        "block": "send",
        "path": "review#5/fan[2]",
        "key": "send:end@review#5/fan[2]",
        "attempt": 2,
        "data": {"route": "out", "output": {"n": 1}},
    }


def test_an_event_of_the_run_itself() -> None:
    event = orjson.loads(encode_record("r", Record(1, 5, "run.started", None, "", 0)))
    assert (event["node"], event["block"], event["key"], event["path"], event["data"]) == (None, None, None, "", {})


def test_output_is_spliced_into_any_object() -> None:
    for data, expected in [(None, {}), (b"{}", {}), (b" { } ", {}), (b'{"a":1}', {"a": 1})]:
        event = orjson.loads(encode_record("r", Record(1, 5, "t", "n", "", 1, data, b"null")))
        assert event["data"] == {**expected, "output": None}


def test_an_event_is_one_line() -> None:
    line = encode_record("r", Record(1, 5, "t", "n", "", 1, b'{\n"a":\r\n"x\\ny"}', b"{\n}"))
    assert b"\n" not in line and b"\r" not in line
    assert orjson.loads(line)["data"] == {"a": "x\ny", "output": {}}


def test_frames_are_shared_and_bounded() -> None:
    cache = FrameCache(1_000)
    record = Record(1, 5, "node.log", "n", "", 1)
    frame = cache.frame("r", record)
    assert frame.startswith(b"id: 1\nevent: node.log\ndata: {") and frame.endswith(b"}\n\n")
    assert cache.frame("r", record) is frame
    assert cache.frame("other", record) is not frame
    for seq in range(2, 50):
        cache.frame("r", Record(seq, 5, "node.log", "n", "", 1))
    assert cache._size <= 1_000
    assert cache._size == sum(len(kept) for kept in cache._frames.values())


def test_a_frame_larger_than_the_cache_is_sent_all_the_same() -> None:
    cache = FrameCache(10)
    assert b"node.log" in cache.frame("r", Record(1, 5, "node.log", "n", "", 1))
    assert cache._size == 0
