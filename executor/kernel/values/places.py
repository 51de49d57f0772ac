"""Values in the places of a text, encoded for the text that they stand in: a value cannot end the part of it that the
author wrote around it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal
from urllib.parse import quote

import orjson

from executor.kernel.values.payload import render

Form = Literal["text", "json", "form", "markup"]
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def form_of(template: str, pattern: re.Pattern[str], media_type: str | None = None) -> Form:
    """Return the form by the media type if that is specific, else JSON if it is JSON with something in each place."""
    media = (media_type or "").partition(";")[0].strip().lower()
    if media.endswith(("/json", "+json", "/x-ndjson", "/jsonl")):
        return "json"
    if media == "application/x-www-form-urlencoded":
        return "form"
    if media.endswith(("/xml", "+xml", "/html")):
        return "markup"
    return "json" if template.lstrip()[:1] in ("{", "[", '"') and _is_json(template, pattern) else "text"


def fill(template: str, pattern: re.Pattern[str], value_of: Callable[[re.Match[str]], Any], form: Form) -> str:
    """Return the text with a value in each place. In JSON a value inside a string is a part of that string, and
    elsewhere a value of its own; what has no value is null there, and nothing elsewhere."""
    strings = [found.span() for found in _STRING.finditer(template)] if form == "json" else []

    def put(place: re.Match[str]) -> str:
        value = value_of(place)
        if form == "json" and not any(start < place.start() and place.end() < end for start, end in strings):
            return orjson.dumps(value).decode()
        text = "" if value is None else render(value)
        match form:
            case "json":
                return json.dumps(text, ensure_ascii=False)[1:-1]
            case "form":
                return quote(text, safe="")
            case "markup":
                return html.escape(text)
        return text

    return pattern.sub(put, template)


def _is_json(template: str, pattern: re.Pattern[str]) -> bool:
    """Also one JSON value in each line."""
    tried = fill(template, pattern, lambda place: 0, "json")
    return _parses(tried) or all(_parses(line) for line in tried.split("\n") if line.strip())


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
