from __future__ import annotations

import gzip

import orjson

from executor.kernel.store.run_rows import Record
from server.http.response import PackedJson, encode_record
from server.http.streams import ChunkCache


def test_a_record_as_an_event() -> None:
    record = Record(
        7, 1_700_000_000_123, "node.succeeded", "send:end", "review#5/fan[2]", 2, b'{"route":"out"}', b'{"n":1}'
    )
    assert orjson.loads(encode_record("r", record)) == {
        "run": "r",
        "seq": 7,
        "at_ms": 1_700_000_000_123,
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


def test_chunks_are_shared_and_bounded() -> None:
    cache = ChunkCache(1_000, 65_536)
    records = [Record(1, 5, "node.log", "n", "", 1)]
    chunks = cache.chunks("r", records)
    assert len(chunks) == 1
    assert chunks[0].startswith(b"id: 1\nevent: node.log\ndata: {") and chunks[0].endswith(b"}\n\n")
    assert cache.chunks("r", records) is chunks
    assert cache.chunks("other", records) is not chunks
    assert cache.chunks("r", records, 10) is not chunks, "cut outputs are other bytes"
    for seq in range(2, 50):
        cache.chunks("r", [Record(seq, 5, "node.log", "n", "", 1)])
    assert cache._size <= 1_000
    assert cache._size == sum(sum(map(len, kept)) for kept, _ in cache._batches.values())


def test_a_batch_larger_than_the_cache_is_sent_all_the_same() -> None:
    cache = ChunkCache(10, 65_536)
    assert b"node.log" in cache.chunks("r", [Record(1, 5, "node.log", "n", "", 1)])[0]
    assert cache._size == 0


def test_chunks_hold_whole_frames() -> None:
    records = [Record(seq, 5, "node.log", "n", "", 1) for seq in range(1, 11)]
    whole = ChunkCache(100_000, 65_536).chunks("r", records)
    cut = ChunkCache(100_000, 300).chunks("r", records)
    assert len(whole) == 1 and len(cut) > 2
    assert all(chunk.startswith(b"id: ") and chunk.endswith(b"\n\n") for chunk in cut)
    assert b"".join(cut) == whole[0]


def test_a_long_answer_is_compressed_for_clients_that_accept_it() -> None:
    value = {"blocks": ["the same words"] * 1000}
    plain = PackedJson(value, None)
    for accept in ("gzip, deflate, br, zstd", "*", "br;q=1.0, gzip;q=0.8"):
        packed = PackedJson(value, accept)
        assert packed.headers["content-encoding"] == "gzip" and packed.headers["vary"] == "Accept-Encoding"
        assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 10
        assert gzip.decompress(packed.body) == plain.body
    for refused in (None, "", "identity", "gzip;q=0", "br"):
        answer = PackedJson(value, refused)
        assert answer.body == plain.body and "content-encoding" not in answer.headers
        assert answer.headers["cache-control"] == "no-store" and answer.headers["content-type"] == "application/json"
