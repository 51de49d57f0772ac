"""The person or program that acts now, to whom changes are attributed, and what roles may do."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

Role = Literal["metrics", "viewer", "approver", "editor", "admin"]  # `metrics`: of tokens alone
ROLES: Final[tuple[Role, ...]] = get_args(Role)  # each may do what those before it may


def includes(role: Role, needed: Role) -> bool:
    """Returns True if `role` may do all that `needed` may."""
    return ROLES.index(role) >= ROLES.index(needed)


class Reach(Struct, frozen=True):
    """The files that a restricted caller may use: those that runs of `workflows` hold, and those that one of
    `uploaders` has stored, which the caller proves."""

    workflows: tuple[str, ...] = ()
    uploaders: tuple[str, ...] = ()


class Act(Struct, eq=False):
    """The act under way, until `acting` ends: `actor`, `via`, `action`, `object` and more in `detail`. The first
    audited change that it makes has a row; its others need none once that is on disk (`is_recorded`). `person` is the
    user whose token the actor is. `reach` are the files that its data may name, or None for all."""

    actor: str
    via: str
    action: str
    object: str
    at_ms: int
    detail: str = ""
    person: str = ""
    reach: Reach | None = None
    is_recorded: bool = False
    is_over: bool = False

    def __post_init__(self) -> None:
        self.person = self.person or self.actor


_act: ContextVar[Act | None] = ContextVar("act", default=None)


class acting:
    """Attribute what is submitted inside to the actor of `act`. A task that is begun inside and outlives it is not."""

    __slots__ = ("_act", "_token")

    def __init__(self, act: Act) -> None:
        self._act = act

    def __enter__(self) -> Act:
        self._token = _act.set(self._act)
        return self._act

    def __exit__(self, *_: object) -> None:
        self._act.is_over = True
        _act.reset(self._token)


def carry_act(act: Act) -> Act:
    """Attribute what is done in this context to the present act, also when that is over. Returns the copy that notes
    whether it is recorded."""
    carried = replace(act)
    _act.set(carried)
    return carried


def leave_act() -> None:
    """Attribute nothing more of this task to the act in which it was started: that act records itself."""
    _act.set(None)


def present_act() -> Act | None:
    """Return the present act, or None if the server acts for itself or the audit row is written."""
    act = _act.get()
    return None if act is None or act.is_over or act.is_recorded else act


def present_actor() -> str | None:
    """Return who acts now, whether or not there is a row about it, or None for the server itself."""
    act = _act.get()
    return None if act is None or act.is_over else act.person


def present_reach() -> Reach | None:
    """Return the reach of who acts now, or None for all files."""
    act = _act.get()
    return None if act is None or act.is_over else act.reach
