"""The time of a database server, measured from here."""

from __future__ import annotations

import pytest

from executor.errors import DatabaseUnavailable
from executor.kernel.process.database_clock import DatabaseClock, elapsed_us


class World:
    """A server and a process, each with a clock. The way to the server and back takes `there_us` and `back_us`."""

    def __init__(self) -> None:
        self.server_us = 1_800_000_000_000_000
        self.here_us = 77_000_000
        self.there_us = self.back_us = 200
        self.is_down = False
        self.clock = DatabaseClock(self.ask, lambda: self.here_us)

    def wait(self, us: int, *, here_us: int | None = None) -> None:
        self.server_us += us
        self.here_us += us if here_us is None else here_us

    async def ask(self) -> int:
        if self.is_down:
            raise DatabaseUnavailable("down")
        self.wait(self.there_us)
        told_us = self.server_us
        self.wait(self.back_us)
        return told_us

    @property
    def behind_us(self) -> int:
        """The server's time less what the clock shows, which has whole milliseconds."""
        return self.server_us - self.clock.now_ms() * 1_000


async def test_it_is_behind_by_the_way_back_and_never_ahead() -> None:
    world = World()
    await world.clock.measure()
    for _ in range(10):
        assert 0 <= world.behind_us <= world.back_us + 1_000
        world.wait(5_000_000, here_us=5_000_200)  # this machine is quick by 40 millionths
        assert world.behind_us >= world.back_us - 200
        await world.clock.measure()


async def test_a_slow_answer_does_not_set_it_back() -> None:
    world = World()
    await world.clock.measure()
    before_ms = world.clock.now_ms()
    world.back_us = 2_000_000
    await world.clock.measure()
    assert world.clock.now_ms() - before_ms >= 2_000
    assert world.behind_us < 2_000


async def test_a_quick_answer_brings_it_nearer() -> None:
    world = World()
    world.back_us = 2_000_000
    await world.clock.measure()
    assert world.behind_us >= 2_000_000
    world.back_us = 100
    await world.clock.measure()
    assert world.behind_us <= 1_100


@pytest.mark.parametrize("step_us", [-30_000_000, 30_000_000])
async def test_it_follows_a_server_whose_clock_was_set(step_us: int, caplog: pytest.LogCaptureFixture) -> None:
    world, jumps = World(), list[int]()
    world.clock.on_jump(lambda: jumps.append(1))
    await world.clock.measure()
    world.server_us += step_us
    await world.clock.measure()
    assert 0 <= world.behind_us <= 1_200
    assert jumps == [1] and "the clock of the database moved by" in caplog.text


async def test_it_is_carried_on_while_the_server_does_not_answer() -> None:
    world = World()
    await world.clock.measure()
    world.is_down = True
    world.wait(60_000_000)
    with pytest.raises(DatabaseUnavailable):
        await world.clock.measure()
    assert 0 <= world.behind_us <= 1_200


def test_what_carries_it_on_does_not_go_back() -> None:
    assert 0 < elapsed_us() <= elapsed_us()
