"""One timer for all streams: who has been quiet for long gets a ping, who takes nothing is ended."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace
from starlette.types import Message

from server.http.sse import PING, _ping_now
from server.http.streams import PINGS_MAX, Place, Streams
from server.settings import Limits
from tests.support.until import until

QUICK = replace(Limits(), stream_ping_s=0.1, stream_send_s=0.2)


def sends(streams: Streams, place: Place, done: bool = True, ago_s: float = 0) -> None:
    streams.sends(place, asyncio.get_running_loop())
    place.sending = not done
    place.sent_at_s -= ago_s


async def test_only_who_is_quiet_is_asked_for_a_ping() -> None:
    streams = Streams(QUICK)
    quiet, busy, waiting = streams.enter("a"), streams.enter("b"), streams.enter("c")  # that one is no stream
    sends(streams, quiet)
    sends(streams, busy, ago_s=-1e6)  # far from quiet
    await asyncio.wait_for(quiet.bell.wait(), 30)
    assert (quiet.ping, busy.ping, waiting.ping) == (True, False, False)
    sends(streams, quiet)
    assert not quiet.ping
    quiet.bell.clear()
    sends(streams, busy, ago_s=-1e6)
    await asyncio.wait_for(quiet.bell.wait(), 30)
    assert quiet.ping
    for place in (quiet, busy, waiting):
        streams.leave(place)


async def test_who_takes_nothing_is_cut_off_once() -> None:
    streams = Streams(QUICK)
    place = streams.enter("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as place.patience:
            sends(streams, place, done=False)
            await asyncio.Event().wait()
    assert place.patience is None and not place.ping
    streams._check_all(asyncio.get_running_loop())  # it has not left yet
    streams.leave(place)


async def test_pings_are_spread() -> None:
    streams = Streams(replace(Limits(), stream_ping_s=30))
    places = [streams.enter(str(n)) for n in range(2 * PINGS_MAX + 1)]
    for place in places:
        sends(streams, place, ago_s=60)
    loop = asyncio.get_running_loop()
    for asked in (PINGS_MAX, PINGS_MAX, 1, 0):
        streams._check_all(loop)
        due = [place for place in places if place.ping]
        assert len(due) == asked
        for place in due:
            sends(streams, place)
    for place in places:
        streams.leave(place)


async def test_a_ping_is_sent_by_the_timer_unless_the_reader_takes_nothing() -> None:
    streams = Streams(replace(Limits(), stream_ping_s=30))
    sent: list[bytes] = []
    taken = asyncio.Event()

    async def send(message: Message) -> None:
        await taken.wait()
        sent.append(message["body"])

    place, quiet = streams.enter("a"), streams.enter("b")
    place.ping_now = partial(_ping_now, send)
    loop = asyncio.get_running_loop()
    sends(streams, place, ago_s=60)
    sends(streams, quiet, ago_s=-60)
    streams._check_all(loop)
    assert place.ping and sent == [], "its task waits until it can be sent"
    taken.set()
    sends(streams, place, ago_s=60)
    streams._sending.move_to_end(quiet)
    place.bell.clear()
    streams._check_all(loop)
    assert sent == [PING] and not place.ping and not place.bell._rung
    streams._check_all(loop)
    assert sent == [PING], "it is not quiet any more"
    sends(streams, place, ago_s=60)
    place.close()
    streams._check_all(loop)
    assert sent == [PING], "its last chunk may be on its way"
    for one in (place, quiet):
        streams.leave(one)


async def test_the_timer_runs_while_something_is_sent() -> None:
    streams = Streams(QUICK)
    first, second = streams.enter("a"), streams.enter("a")
    assert streams._timer is None
    sends(streams, first)
    sends(streams, second)
    streams.leave(first)
    assert streams._timer is not None
    streams.leave(second)
    assert streams._timer is None
    again = streams.enter("a")
    sends(streams, again)
    await until(lambda: again.ping)
    streams.leave(again)


async def test_streams_end_with_their_session_and_all_when_the_server_stops() -> None:
    streams = Streams(Limits())
    mine, yours, open_to_all = streams.enter("a", "mine"), streams.enter("a", "yours"), streams.enter("b")
    assert streams.sessions == {"mine", "yours"}
    streams.close_session("mine")
    assert (mine.closing, yours.closing, open_to_all.closing) == (True, False, False)
    streams.close_sessions()
    assert (yours.closing, open_to_all.closing) == (True, False)
    streams.close()
    late = streams.enter("c")
    assert open_to_all.closing and late.closing
    await asyncio.wait_for(late.bell.wait(), 30)
    await asyncio.wait_for(late.closed, 30)
    for place in (mine, yours, open_to_all, late):
        streams.leave(place)
    assert len(streams) == 0 and streams.sessions == set()
