"""The answers of the model: the first rule of the script that fits the request, or an example if none does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from server.shipped import examples_folder

from .example import example
from .files import Seen

_PLACE: Final = re.compile(r"\{\{(last|tool|files)\}\}")
CHARS_PER_TOKEN: Final = 4
PAUSE_MS: Final = 30  # between the pieces of an answer without a rule, so that one sees it being written


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions of a rule; all that are set must hold. `last`, `system`: a text in the last message of the user or in
    the instructions, in any case; `tool`: the last result is of this tool, or `""` if there is none since the last
    message of the user; `offers`: the request offers this tool; `round`: the number of replies in it; `model`: its
    name; `file`: the last message of the user has a file whose media type begins so, or `""` if it has none."""

    last: str | None = None
    system: str | None = None
    tool: str | None = None
    offers: str | None = None
    round: int | None = None
    model: str | None = None
    file: str | None = None


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call. `arguments`: an object, or a text that is sent as it is."""

    name: str
    arguments: dict[str, Any] | str = {}


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """An error instead of a reply."""

    status: int
    message: str = "scripted error"
    retry_after: float | None = None


class Tokens(Struct, frozen=True, forbid_unknown_fields=True):
    """The token counts of a reply. Without a count it is one token per four characters."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """`text`, `calls` and `output` are the reply. In texts `{{last}}` is the last message of the user, `{{tool}}` the
    last result of a tool, `{{files}}` the descriptions of the user's files, also in texts of an output. `output`: sent
    in the way in which the request asks for it. `times`: how often the rule can be used. `pause_ms`: before each piece.
    `cut_after`: the connection ends after this number of pieces."""

    when: When = When()
    text: str = ""
    calls: tuple[Call, ...] = ()
    output: Any = None
    usage: Tokens = Tokens()
    error: Failure | None = None
    stop: str | None = None
    pause_ms: int = 0
    cut_after: int | None = None
    times: int | None = None


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """The file of `weft dev-model --script`."""

    rules: tuple[Rule, ...] = ()


class Asked(Struct, frozen=True):
    """A request, in either format. `results`: tools whose results came since the last reply. `schema`: the schema of
    the output, and `output_tool` the tool that takes it; `required`: the model has to call a tool. `files`: those of
    the last message of the user."""

    model: str
    system: str
    last: str
    results: tuple[tuple[str, str], ...]
    round: int
    tools: Mapping[str, Any]
    schema: Any = None
    output_tool: str | None = None
    required: bool = False
    stream: bool = False
    usage_wanted: bool = True
    chars: int = 0
    files: tuple[Seen, ...] = ()


class Answer(Struct, frozen=True):
    """A reply. `calls`: name, id and the arguments as text."""

    text: str
    calls: tuple[tuple[str, str, str], ...]
    input_tokens: int
    output_tokens: int
    usage: Tokens
    stop: str | None
    rule: Rule


class Player:
    """Plays a script. The same request has the same answer, except where a rule counts `times`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._used: dict[int, int] = {}

    def answer(self, asked: Asked) -> Answer | Failure:
        """Return the answer to this request."""
        rule = self._rule(asked) or _example(asked)
        if rule.error is not None:
            return rule.error
        text = _filled(rule.text, asked)
        calls = [(call.name, call.arguments) for call in rule.calls]
        if rule.output is not None:
            output = _filled_in(rule.output, asked)
            if asked.output_tool is not None:
                calls.append((asked.output_tool, output))
            else:
                text += _json(output)
        numbered = tuple(
            (name, f"call_{asked.round}_{n}", given if isinstance(given, str) else _json(given))
            for n, (name, given) in enumerate(calls)
        )
        said = len(text) + sum(len(name) + len(given) for name, _, given in numbered)
        usage = rule.usage
        return Answer(
            text,
            numbered,
            asked.chars // CHARS_PER_TOKEN + 1 if usage.input_tokens is None else usage.input_tokens,
            said // CHARS_PER_TOKEN + 1 if usage.output_tokens is None else usage.output_tokens,
            usage,
            rule.stop,
            rule,
        )

    def _rule(self, asked: Asked) -> Rule | None:
        for n, rule in enumerate(self._script.rules):
            if _fits(rule.when, asked) and (rule.times is None or self._used.get(n, 0) < rule.times):
                self._used[n] = self._used.get(n, 0) + 1
                return rule
        return None


def read_script(data: bytes) -> Script:
    """Read the script in a file. Raises ValueError with the error in it."""
    try:
        return msgspec.json.decode(data, type=Script)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ValueError(str(error)) from None


def of_examples() -> Script:
    """Return the scripts of all examples. Each rule has a condition, so that they can be combined."""
    files = sorted(examples_folder().joinpath("models").glob("*.json"))
    return Script(tuple(rule for file in files for rule in read_script(file.read_bytes()).rules))


def _example(asked: Asked) -> Rule:
    """Return the answer without a rule: the requested output, a call of the first tool if one is required, a call of
    each tool that the last message names, or the last message."""
    if asked.schema is not None:
        return Rule(output=example(asked.schema))
    if asked.required and asked.tools:
        name, schema = next(iter(asked.tools.items()))
        return Rule(calls=(Call(name, example(schema) or {}),))
    if (named := _next_tool(asked)) is not None:
        return Rule(calls=(Call(named, _arguments(asked.tools[named], asked.last)),), pause_ms=PAUSE_MS)
    if asked.results:
        return Rule(text="The tool answered: {{tool}}", pause_ms=PAUSE_MS)
    hint = f"\n\nWrite the name of a tool and I call it: {', '.join(asked.tools)}." if asked.tools else ""
    return Rule(text="You said: {{last}}" + hint, pause_ms=PAUSE_MS)


def _next_tool(asked: Asked) -> str | None:
    """Return the tool that the last message names after the one that was called last; spaces may stand for `_`."""
    places = {
        name: found.start()
        for name in asked.tools
        if (found := re.search(rf"\b{_spoken(name)}\b", asked.last, re.IGNORECASE))
    }
    if asked.results and asked.results[-1][0] not in places:
        return None
    last = places[asked.results[-1][0]] if asked.results else -1
    return min((name for name in places if places[name] > last), key=lambda name: places[name], default=None)


def _arguments(schema: Any, message: str) -> dict[str, Any]:
    """Return example arguments; `order 17` in the message gives the argument `order`, and any number an id."""
    made = example(schema)
    if not isinstance(made, dict):
        return {}
    number = re.search(r"\b\d+\b", message)
    for name, value in made.items():
        said = re.search(rf"\b{_spoken(name)}\W+([\w.@-]*\w)", message, re.IGNORECASE)
        text = said[1] if said else number[0] if number and name.lower().endswith("id") else None
        if text is not None and isinstance(value, str):
            made[name] = text
        elif text is not None and type(value) is int and text.isdecimal() and len(text) < 16:
            made[name] = int(text)
    return made


def _spoken(name: str) -> str:
    return "[ _-]".join(map(re.escape, re.split(r"[_-]", name)))


def _fits(when: When, asked: Asked) -> bool:
    result = asked.results[-1][0] if asked.results else ""
    return (
        (when.last is None or when.last.lower() in asked.last.lower())
        and (when.system is None or when.system.lower() in asked.system.lower())
        and (when.tool is None or when.tool == result)
        and (when.offers is None or when.offers in asked.tools)
        and (when.round is None or when.round == asked.round)
        and (when.model is None or when.model == asked.model)
        and (when.file is None or _shows(when.file, asked))
    )


def _shows(media_type: str, asked: Asked) -> bool:
    return any(file.media_type.startswith(media_type) for file in asked.files) if media_type else not asked.files


def _filled(text: str, asked: Asked) -> str:
    files = "; ".join(file.about for file in asked.files) or "no files"
    values = {"last": asked.last, "tool": asked.results[-1][1] if asked.results else "", "files": files}
    return _PLACE.sub(lambda place: values[place[1]], text)


def _filled_in(value: Any, asked: Asked) -> Any:
    """Only the places of files: other texts of an output are sent as they are."""
    if isinstance(value, dict):
        return {name: _filled_in(inner, asked) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled_in(inner, asked) for inner in value]
    return _filled(value, asked) if isinstance(value, str) and "{{files}}" in value else value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
