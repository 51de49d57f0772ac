"""A value against a JSON Schema, in bounded time: schemas come from workflows, values from anyone with a link.

jsonschema alone can be kept busy for hours: by a pattern that backtracks, by definitions that refer to each other twice
each, by uniqueItems over objects. Here a check has a deadline, patterns are matched in the sandbox (which has its own),
uniqueItems is linear, and no schema is fetched from anywhere. Patterns are those of JSON Schema: JavaScript's.

The deadline is in computing time of this thread: on a busy machine, or while the sandbox is made for the first pattern
of a process, a check that costs nothing may take a second.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from compiler.plan import Node
from compiler.references import escape
from compiler.schema import schema_error
from executor.errors import BadRequest, BlockError
from executor.kernel.process.threads import aside
from executor.kernel.values.files import FORMAT, is_file

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Matches = Callable[[str, str], bool]

ERRORS_SHOWN_MAX: Final = 20
CHECK_S_MAX: Final = 0.5
PLAIN_TEXT_MAX: Final = 256
QUICK_BYTES: Final = 400_000  # of the schema times those of the value

# Groups that repeat, groups with a meaning of their own, and what only one of the languages has, or reads in its way.
_NOT_PLAIN = re.compile(
    r"\)[*+?{]|\(\?|\\[^dDwWsS.\\/+*?^$()\[\]{}|@-]|\[\]|\[\^\]"
    r"|\[\[|--|&&|~~|[*+?}][*+]|\{(?!\d+(,\d*)?\})"
)
_REPEAT = re.compile(r"[*+{]")


def violations(schema: Mapping[str, Any], value: Any, matches: Matches | None = None) -> list[dict[str, str]]:
    """Return the first 20 violations, [{"pointer", "message"}], by place. `matches` is the sandbox's; without one
    Python's own, for schemas that can be trusted. Raises BadRequest: schema_invalid, check_took_too_long."""
    problem = schema_error(orjson.dumps(schema))
    if problem is not None:
        raise BadRequest(
            f"the schema itself is not valid: {problem}", code="schema_invalid", hint="fix the schema in the workflow"
        )
    from referencing import Registry

    checker = _checker()
    limits = _Limits(time.thread_time() + CHECK_S_MAX, _quicker(matches) if matches is not None else _python_matches)
    of_before = _limits.set(limits)
    try:
        found = list(islice(checker(dict(schema), registry=Registry()).iter_errors(value), ERRORS_SHOWN_MAX))
    except BlockError as error:
        if error.code == "expression_failed":
            raise BadRequest(
                f"the schema itself is not valid: it has an invalid pattern: {error.message}",
                code="schema_invalid",
                hint="fix the pattern in the workflow; patterns are JavaScript regular expressions",
            ) from None
        raise _too_long(error) from None
    except _TooLong as error:
        raise _too_long(error) from None
    except Exception as error:  # a reference without a target or in a circle; each has a type of its own
        raise BadRequest(
            f"the schema itself is not valid: {str(error)[:300]}",
            code="schema_invalid",
            hint="fix the schema in the workflow",
        ) from error
    finally:
        _limits.reset(of_before)
    found.sort(key=lambda error: [str(part) for part in error.absolute_path])
    return [
        {"pointer": "".join(f"/{escape(str(part))}" for part in error.absolute_path), "message": error.message[:300]}
        for error in found
    ]


def takes_long(schema: Mapping[str, Any], value: Any) -> bool:
    """May `violations` take more than some 20 ms? Patterns and references cost what their author wants."""
    text = orjson.dumps(schema)
    try:
        size = len(orjson.dumps(value))
    except TypeError:  # it is no JSON, which is found without a schema
        return False
    return b"attern" in text or b'ef"' in text or len(text) * size > QUICK_BYTES


async def violations_aside(
    schema: Mapping[str, Any], value: Any, matches: Matches | None = None
) -> list[dict[str, str]]:
    """`violations`, beside the event loop if it may take long."""
    work = partial(violations, schema, value, matches)
    return await aside(work) if takes_long(schema, value) else work()


def _too_long(why: Exception) -> BadRequest:
    return BadRequest(
        f"checking this against its schema takes too long: {why}",
        code="check_took_too_long",
        hint="send less data, or simplify the schema: use plain patterns and no definitions that multiply",
    )


class _TooLong(Exception):
    """The deadline has passed."""


class _Limits(NamedTuple):
    """The limits of the current check. `deadline` is by time.thread_time()."""

    deadline: float
    matches: Matches


# A validator makes others of its class for inner schemas and hands nothing else on to them.
_limits: ContextVar[_Limits] = ContextVar("weft_schema_check")


@cache
def _checker() -> Any:
    """Return the validator class, which looks at the clock before each keyword. Its libraries load in a twentieth of a
    second, for the first schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def timed(rule: Any) -> Any:
        def checked(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            _look_at_the_clock()
            return rule(validator, keyword, instance, schema) or iter(())

        return checked

    rules = {name: timed(rule) for name, rule in {**Draft202012Validator.VALIDATORS, **_own_rules()}.items()}
    return extend(Draft202012Validator, rules)  # type: ignore[no-untyped-call]  # the stubs leave its parameters out


def _look_at_the_clock() -> None:
    if time.thread_time() > _limits.get().deadline:
        raise _TooLong(f"more than {CHECK_S_MAX:g} s of computing")


def _matches(wanted: str, text: str) -> bool:
    return _limits.get().matches(wanted, text)


def _own_rules() -> dict[str, Any]:
    from jsonschema.exceptions import ValidationError

    def pattern(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, str) and not _matches(wanted, instance):
            yield ValidationError(f"{instance[:100]!r} does not match {wanted[:100]!r}")

    def pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        for wanted, inner in patterns.items() if isinstance(instance, dict) else ():
            for name, item in instance.items():
                if _matches(wanted, name):
                    yield from validator.descend(item, inner, path=name, schema_path=wanted)

    def additional(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(instance, dict):
            return
        listed, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, item in instance.items():
            if name in listed or any(_matches(wanted, name) for wanted in patterns):
                continue
            if inner is False:
                yield ValidationError(f"unknown field {name[:100]!r}")
            else:
                yield from validator.descend(item, inner, path=name)

    def unique(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
        """1 and 1.0 are the same number, 1 and true are not the same."""
        seen: set[bytes] = set()
        for item in instance if wanted and isinstance(instance, list) else ():
            _look_at_the_clock()
            text = orjson.dumps(_plain(item), option=orjson.OPT_SORT_KEYS)
            if text in seen:
                yield ValidationError("the list has duplicate items")
                return
            seen.add(text)

    def file(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        """`format: file` on its own or with type object; other formats are remarks."""
        if wanted == FORMAT and schema.get("type", "object") == "object" and not is_file(instance):
            yield ValidationError("this is not a file: upload one with POST /api/files, and use what that returns")

    return {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "uniqueItems": unique,
        "format": file,
    }


def _plain(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _quicker(matches: Matches) -> Matches:
    """Use Python's patterns where they mean the same and take no longer than the cube of a short text: a call of the
    sandbox costs a quarter of a millisecond."""

    def quick(pattern: str, text: str) -> bool:
        if _is_plain(pattern) and len(text) <= PLAIN_TEXT_MAX and text.isascii() and not text.endswith("\n"):
            return re.search(pattern, text, re.ASCII) is not None
        return matches(pattern, text)

    return quick


@lru_cache(maxsize=256)
def _is_plain(pattern: str) -> bool:
    if not pattern.isascii() or _NOT_PLAIN.search(pattern) is not None:
        return False
    return len(_REPEAT.findall(pattern)) <= (3 if pattern.startswith("^") else 2) and "|" not in pattern


def _python_matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


# To look through a value takes about 10 us for each of its parts: what is larger is done beside the event loop.
ASIDE_BYTES: Final = 16 * 1024


async def check_output(node: Node, output: bytes, matches: Matches) -> None:
    """Check an output against the block's own schema, before anything of it is recorded. Raises
    BlockError(output_invalid) naming the first place that does not fit."""
    schema = node.output_schema
    if schema is None:
        return
    value = orjson.loads(output)
    try:
        found = await violations_aside(schema, value, matches)
    except BadRequest as error:  # the check itself did not come to an end
        raise BlockError(error.message, code="output_invalid", retryable=False, hint=error.hint) from error
    if found:
        where = f" at {found[0]['pointer']}" if found[0]["pointer"] else ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise BlockError(
            f"the output does not match the output_schema of the block{where}: {found[0]['message']}{more}",
            code="output_invalid",
            retryable=node.effect != "none",
            hint="change what the block returns, or its output_schema: a Python step has it from its annotations",
        )
