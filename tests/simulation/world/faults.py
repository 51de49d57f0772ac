"""What goes wrong in a world, and how often. Each seed switches most of it off: rare meetings happen somewhere then."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Faults:
    """Means between two of a kind are in virtual seconds, 0: never. The others are chances: per commit, read, wake-up
    or request. `slow_s`: how long a commit or a read may take, `sandbox_s`: an expression."""

    crash_s: float = 0
    stop_s: float = 0  # the process is asked to end, and does
    freeze_s: float = 0
    clock_s: float = 0
    theft_s: float = 0  # a lease ends before its time
    busy: float = 0.0
    refused: float = 0.0  # an I/O error, nothing is written
    uncertain: float = 0.0  # COMMIT raises, committed or not
    unread: float = 0.0
    lost_wakeups: float = 0.0
    twice: float = 0.0  # a client asks again though it was told, or asks two processes at once
    cancel: float = 0.0
    slow_s: float = 0.05
    sandbox_s: float = 0

    @property
    def calm(self) -> bool:
        """No process dies, stalls or fails: then everything is done within seconds."""
        harm = self.crash_s + self.stop_s + self.freeze_s + self.clock_s + self.theft_s
        return not (harm or self.busy or self.refused or self.uncertain or self.unread)

    @classmethod
    def draw(cls, rng: Random) -> Faults:
        twice = rng.choice((0.0, 0.2, 0.6))
        cancel = 0.4 if rng.random() < 0.25 else 0.0
        lost_wakeups = rng.choice((0.0, 0.0, 0.3, 1.0))
        if rng.random() < 0.3:
            return cls(twice=twice, cancel=max(cancel, rng.choice((0, 0.4))), lost_wakeups=lost_wakeups)
        sick = rng.random() < 0.35  # the disk
        return cls(
            crash_s=rng.choice((0, 0, 3, 10)),
            stop_s=rng.choice((0, 0, 0, 10)),
            freeze_s=rng.choice((0, 0, 5)),
            clock_s=rng.choice((0, 0, 0, 15)),
            busy=0.05 if sick else 0.0,
            refused=rng.choice((0.0, 0.03)) if sick else 0.0,
            uncertain=rng.choice((0.0, 0.05)) if sick else 0.0,
            unread=rng.choice((0.0, 0.02)) if sick else 0.0,
            lost_wakeups=lost_wakeups,
            twice=twice,
            cancel=cancel,
            slow_s=rng.choice((0.01, 0.05, 0.5)),
            theft_s=rng.choice((0, 0, 5)),
            sandbox_s=rng.choice((0, 0.1, 20)),  # the longest: more than a process that ends waits
        )


HEALTHY = Faults()
