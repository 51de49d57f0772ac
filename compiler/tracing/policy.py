"""The options of `@weft.step` for calls that fail, take too long, are lost, or can use a stored result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypedDict

import msgspec
from msgspec import Struct

from compiler.builder.errors import DefinitionError
from compiler.document import PolicyDoc

DAY_S: Final = 86_400
Errors = tuple[type[Exception], ...]


class Retry(Struct, frozen=True):
    """The repetition of a step after an exception: `@weft.step(retries=weft.Retry(5, never=(ValueError,)))`.

    times     how often at most
    first     seconds before the first of them. Each later pause is `factor` times as long, at most `at_most` seconds,
              and up to a quarter shorter or longer, so that not all come at once
    only      exceptions after which it is repeated; without it, all
    never     exceptions after which it is not
    """

    times: int
    first: float = 1
    factor: float = 2
    at_most: float = 300
    only: Errors = ()
    never: Errors = ()

    def __post_init__(self) -> None:
        if not (0 <= self.times < 100 and 0 <= self.first <= self.at_most <= DAY_S and 1 <= self.factor <= 100):
            raise ValueError(
                "Retry: times is 0 to 99, factor 1 to 100, first at most at_most, and that at most 86,400 seconds: "
                f"{self}"
            )

    def permits(self, raised: BaseException) -> bool:
        return (not self.only or isinstance(raised, self.only)) and not isinstance(raised, self.never)

    @property
    def fields(self) -> dict[str, Any]:
        """`policy.retry` of a block."""
        first_ms, at_most_ms = round(self.first * 1000), round(self.at_most * 1000)
        return {"max_attempts": self.times + 1, "initial_ms": first_ms, "factor": self.factor, "max_ms": at_most_ms}


class Policy(TypedDict, total=False):
    retries: int | Retry | Mapping[str, Any] | None
    timeout: float | None
    cache: bool | float | Mapping[str, Any] | None
    on_lost: Literal["retry", "ask", "fail"] | None


def policy_of(options: Policy) -> dict[str, Any]:
    """Return the `policy` of a block. Raises TypeError, DefinitionError."""
    if wrong := [name for name in options if name not in Policy.__annotations__]:
        raise TypeError(f"a step has no option {wrong[0]!r}, but {', '.join(Policy.__annotations__)}")
    retries, timeout, cache = options.get("retries"), options.get("timeout"), options.get("cache")
    policy: dict[str, Any] = {}
    if isinstance(retries, Retry):
        policy["retry"] = retries.fields
    elif retries is not None:
        policy["retry"] = dict(retries) if isinstance(retries, Mapping) else {"max_attempts": retries + 1}
    if timeout is not None:
        policy["timeout_s"] = timeout
    if isinstance(cache, Mapping):
        policy["cache"] = dict(cache)
    elif cache is not None and cache is not False:
        policy["cache"] = {} if cache is True else {"ttl_s": cache}
    if (on_lost := options.get("on_lost")) is not None:
        policy["on_lost"] = on_lost
    try:
        msgspec.convert(policy, PolicyDoc)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"{', '.join(Policy.__annotations__)}: {error}.") from None
    return policy


def checked(what: str, errors: Any) -> Errors:
    """Raises DefinitionError: they are not a tuple of exceptions."""
    found = (errors,) if isinstance(errors, type) else tuple(errors) if isinstance(errors, list | tuple) else (errors,)
    for one in found:
        if not (isinstance(one, type) and issubclass(one, Exception)):
            raise DefinitionError(f"{what} takes classes of exceptions, such as {what}=(ValueError,), not {one!r}.")
    return found
