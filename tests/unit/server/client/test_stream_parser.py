"""The reading side of Server-Sent Events, cut at every place a network may cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.client.stream import Frame, SseParser

STREAM = (
    b"\xef\xbb\xbfretry: 2000\n\n"
    b": ping\n\n"
    b'id: 1\nevent: run.started\ndata: {"seq": 1}\n\n'
    b"event: node.delta\ndata: token\n\n"
    b"id: 2\r\ndata: first\r\ndata:second\r\n\r\n"
    b"id: 3\rdata:\r\r"
    b"data: \xe2\x82\xac\nunknown\n\n"
    b"id: 4\ndata: cut off"
)
FRAMES = [
    Frame("run.started", '{"seq": 1}', "1"),
    Frame("node.delta", "token"),
    Frame("message", "first\nsecond", "2"),
    Frame("message", "", "3"),
    Frame("message", "€"),
]


def test_frames_of_a_whole_stream() -> None:
    assert SseParser().feed(STREAM) == FRAMES


def test_one_byte_at_a_time() -> None:
    parser = SseParser()
    assert [frame for byte in STREAM for frame in parser.feed(bytes([byte]))] == FRAMES


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_cuts_give_the_same_frames(cuts: list[int]) -> None:
    parser = SseParser()
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(edges)]
    assert [frame for chunk in chunks for frame in parser.feed(chunk)] == FRAMES


def test_a_frame_may_be_as_large_as_the_limit_and_not_larger() -> None:
    frame = b"data: " + b"x" * 94
    assert SseParser(frame_bytes_max=102).feed(frame + b"\n\n") == [Frame("message", "x" * 94)]
    parser = SseParser(frame_bytes_max=102)
    with pytest.raises(ValueError, match="larger than 102 bytes"):
        for _ in range(3):
            parser.feed(frame[:50])


def test_many_small_frames_in_one_chunk_are_no_large_frame() -> None:
    assert len(SseParser(frame_bytes_max=1000).feed(b"data: 1\n\n" * 100)) == 100
