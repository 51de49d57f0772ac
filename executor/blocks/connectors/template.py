"""Fills a connector's requests: `{{name}}` stands for a field. Fields are data: nothing in them is expanded again.

A text that is one placeholder and nothing else becomes the value as it is, and is left out of objects and lists when
the field has none; so is an object or a list within another if none of its fields has a value. Inside a longer text, a
value is written as text, and in a text that is JSON as part of the string, or as the value, that stands there. In a
path it is percent-encoded, with `{{+name}}` its slashes stay. `{"$mime": {"to", "subject", "text", …}}` is a mail in
base64url, as Gmail expects it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final
from urllib.parse import quote

from executor.blocks.types.params import invalid
from executor.kernel.values.payload import render
from executor.kernel.values.places import fill, form_of

PLACEHOLDER: Final = re.compile(r"\{\{(\+?)([a-z][a-z0-9_]*)\}\}")
MIME: Final = "$mime"
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_MISSING: Final = object()


def names_in(template: Any) -> Iterator[str]:
    match template:
        case str():
            yield from (found[2] for found in PLACEHOLDER.finditer(template))
        case Mapping():
            for value in template.values():
                yield from names_in(value)
        case list():
            for value in template:
                yield from names_in(value)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill the template as JSON. Returns None if nothing of it has a value."""
    value = _filled(template, values)
    return None if value is _MISSING else value


def form_of_body(body: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a form: parts of an object are named `a[b]`, those of a list `a[0]`."""
    if not isinstance(body, Mapping | list):
        yield name, body
        return
    for key, value in enumerate(body) if isinstance(body, list) else body.items():
        yield from form_of_body(value, f"{name}[{key}]" if name else str(key))


def in_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Escape the letters in headers that are JSON, because only ASCII can be sent in one."""
    return {
        name: "".join(letter if letter.isascii() else json.dumps(letter)[1:-1] for letter in value)
        if isinstance(value, str) and value.startswith("{")
        else value
        for name, value in headers.items()
    }


def filled_path(template: str, values: Mapping[str, Any]) -> str:
    """Fill a path. Raises BlockError(params_invalid) for a value that would lead to another place than the path."""

    def part(found: re.Match[str]) -> str:
        text = render(values.get(found[2], ""))
        steps = text.split("/") if found[1] else [text]
        if any(step in ("", ".", "..") for step in steps):
            raise invalid(f"{found[2]} cannot be part of an address: {text[:80]!r}")
        return "/".join(quote(step, safe="") for step in steps)

    return PLACEHOLDER.sub(part, template)


def filled_base(template: str, values: Mapping[str, Any]) -> str:
    """Fill an address whose host or path has fields; a placeholder without a value stays. Raises
    BlockError(params_invalid) for a value that would lead to another host."""
    scheme, mark, rest = template.partition("://")
    host, slash, path = rest.partition("/")

    def part(found: re.Match[str]) -> str:
        if found[2] not in values:
            return found[0]
        label = render(values[found[2]])
        if _HOST.fullmatch(label) is None:
            raise invalid(f"{found[2]} cannot be part of an address: {label[:80]!r}")
        return label

    return f"{scheme}{mark}{PLACEHOLDER.sub(part, host)}{slash}{PLACEHOLDER.sub(part, path)}"


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    match template:
        case str():
            if whole := PLACEHOLDER.fullmatch(template):
                value = values.get(whole[2])
                return _MISSING if value is None else value
            return fill(template, PLACEHOLDER, lambda found: values.get(found[2]), form_of(template, PLACEHOLDER))
        case Mapping() if set(template) == {MIME}:
            parts = _filled(template[MIME], values)
            return _mime(parts if isinstance(parts, Mapping) else {})
        case Mapping():
            parts = {name: _filled(value, values) for name, value in template.items() if not _is_idle(value, values)}
            some = {name: value for name, value in parts.items() if value is not _MISSING}
            return some if some or not template else _MISSING
        case list():
            items = [value for value in (_filled(item, values) for item in template) if value is not _MISSING]
            return items if items or not template else _MISSING
        case _:
            return template


def _is_idle(part: Any, values: Mapping[str, Any]) -> bool:
    """Return True for an object or a list of constants and fields of which none has a value, as in an optional part of
    a body with its kind."""
    names = set(names_in(part)) if isinstance(part, Mapping | list) else set()
    return bool(names) and all(values.get(name) is None for name in names)


def _mime(parts: Mapping[str, Any]) -> str:
    mail = EmailMessage()
    try:
        for name in ("to", "cc", "bcc", "subject"):
            if value := parts.get(name):
                mail[name.capitalize()] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        mail.set_content(str(parts.get("text") or ""))
    except ValueError as error:
        raise invalid(f"the mail cannot be written: {error}") from None
    return base64.urlsafe_b64encode(mail.as_bytes(policy=SMTP)).decode()
