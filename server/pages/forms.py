"""A form from a JSON Schema, and the answer that comes back from it. Works without JavaScript.

Strings, numbers, integers, booleans and enums get a control of their own; everything else is a text area for JSON. The
editor's forms follow the same rules (web/src/forms/fields/form.ts); tests/vectors/forms.json holds both to them.
Names of inputs carry the prefix `field.`, so that a field may be called `action` or `by`."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

from executor.errors import WeftError
from executor.kernel.values.files import FORMAT, is_file
from executor.service.triggers.forms import FormView
from executor.service.views import RunView
from server.pages import html as instead
from server.pages.html import Html, as_json, el, join, page, value_view
from server.ui import Extras

PREFIX = "field."
LONG_TEXT = 120  # characters from which a text gets a text area
INTEGER_CHARS_MAX = 100  # Python reads no integers of thousands of digits
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INPUT_TYPES = {"email": "email", "uri": "url", "date": "date", "time": "time"}


def schema_fields(schema: Any) -> dict[str, dict[str, Any]]:
    """The properties of an object schema, in order; whatever else it is, no fields."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return {}
    return {str(name): dict(field) if isinstance(field, Mapping) else {} for name, field in properties.items()}


def form_fields(schema: Any, typed: Mapping[str, str] | None, errors: Mapping[str, str]) -> Html:
    """Return a labelled control for each property. `given` is what was typed before (by input name); `errors` are by
    property."""
    required = _required(schema)
    return join(
        [
            _field(name, field, name in required, typed, errors.get(name))
            for name, field in schema_fields(schema).items()
        ]
    )


def file_inputs(schema: Any) -> frozenset[str]:
    """Return the names of the inputs that take files. A form with one is sent as multipart/form-data."""
    return frozenset(PREFIX + name for name, field in schema_fields(schema).items() if kind_of(field) == "file")


def encoding_of(schema: Any) -> str | None:
    return "multipart/form-data" if file_inputs(schema) else None


def read_form(schema: Any, typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields as JSON values, and an error text for each that could not be read. Empty inputs are left out."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, field in schema_fields(schema).items():
        text = typed.get(PREFIX + name)
        kind = kind_of(field)
        if kind == "boolean":
            values[name] = text is not None and text not in ("", "false")
        elif text is not None and text.strip():
            try:
                values[name] = _read(kind, text)
            except ValueError as error:
                errors[name] = str(error)
        elif name in _required(schema):
            errors[name] = "Choose a file." if kind == "file" else "Enter a value."
    return values, errors


def placed_errors(schema: Any, error: WeftError) -> tuple[dict[str, str], str | None]:
    """Return the messages by the field that their pointer names, and one text with those that belong to no field."""
    known = schema_fields(schema)
    at_field: dict[str, str] = {}
    on_top: list[str] = []
    for one in error.extra.get("errors") or [{"pointer": "", "message": error.message}]:
        name = one["pointer"].split("/")[1].replace("~1", "/").replace("~0", "~") if one["pointer"] else None
        if name in known:
            at_field.setdefault(name, one["message"])
        else:
            on_top.append(one["message"])
    return at_field, " ".join(on_top) or None


def _required(schema: Any) -> frozenset[str]:
    listed = schema.get("required") if isinstance(schema, Mapping) else None
    return frozenset(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else frozenset()


def _read(kind: str, text: str) -> Any:
    if kind in ("string", "long"):
        return text.replace("\r\n", "\n")
    if kind == "integer":
        if not _INTEGER.fullmatch(text.strip()):
            raise ValueError("Enter a whole number.")
        if len(text) > INTEGER_CHARS_MAX or abs(int(text)) >= 2**53:
            raise ValueError("This number is too large.")
        return int(text)
    if kind == "file":
        return _file(text)
    if kind == "number":
        return _number(text.strip().replace(",", "."))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ValueError("Choose one of the options." if kind == "enum" else f"Enter valid JSON: {error}") from None


def _file(text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not is_file(value):
        raise ValueError("Choose a file.")
    return value


def _number(text: str) -> int | float:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("Enter a number.")
    return value


def kind_of(field: Mapping[str, Any]) -> str:
    """string, long (a string in several lines), integer, number, boolean, enum, file, or json."""
    if isinstance(field.get("enum"), list):
        return "enum"
    if field.get("format") == FORMAT and field.get("type", "object") == "object":
        return "file"
    listed = field.get("type")
    kinds = [k for k in listed if k != "null"] if isinstance(listed, list) else [listed]
    if kinds == ["string"]:
        return "long" if _is_long(field) else "string"
    return kinds[0] if len(kinds) == 1 and kinds[0] in ("integer", "number", "boolean") else "json"


def _is_long(field: Mapping[str, Any]) -> bool:
    length = field.get("maxLength")
    return field.get("format") in ("textarea", "multiline") or (isinstance(length, int) and length > LONG_TEXT)


def initial_text(field: Mapping[str, Any]) -> str:
    """The default as text; of a checkbox "true" or nothing."""
    if "default" not in field:
        return ""
    default, kind = field["default"], kind_of(field)
    if kind == "boolean":
        return "true" if default is True else ""
    return default if isinstance(default, str) and kind in ("string", "long") else orjson.dumps(default).decode()


def _field(
    name: str, field: Mapping[str, Any], required: bool, typed: Mapping[str, str] | None, error: str | None
) -> Html:
    kind = kind_of(field)
    id = PREFIX + name
    value = typed.get(id) if typed is not None else initial_text(field) or None
    title = str(field.get("title") or name)
    marks: dict[str, Any] = {
        "aria_invalid": "true" if error else None,
        "aria_describedby": f"{id}.note" if error or field.get("description") else None,
    }
    note = el(
        "small", error or str(field.get("description", "")), id=f"{id}.note", class_="error" if error else "quiet"
    )
    note = note if error or field.get("description") else Html("")
    if kind == "boolean":
        box = el(
            "input", type="checkbox", name=id, id=id, value="true", checked=value not in (None, "", "false"), **marks
        )
        return el("div", el("label", box, el("span", title), for_=id, class_="check"), note, class_="field")
    optional = None if required or _is_needed(field) else el("span", " (optional)", class_="quiet")
    label = el("label", title, optional, for_=id)
    return el("div", label, _control(kind, id, field, value, required, marks), note, class_="field")


def _is_needed(field: Mapping[str, Any]) -> bool:
    """Return whether one of the actions needs the field, so that the form cannot require it."""
    shown = field.get("x-ui")
    return isinstance(shown, Mapping) and shown.get("needed") is True


def _control(
    kind: str, id: str, field: Mapping[str, Any], value: str | None, required: bool, marks: dict[str, Any]
) -> Html:
    common: dict[str, Any] = {"name": id, "id": id, "required": required, **marks}
    if kind == "enum":
        options = [el("option", "", value="")]
        for choice in field["enum"]:
            text = orjson.dumps(choice).decode()
            options.append(
                el("option", choice if isinstance(choice, str) else text, value=text, selected=value == text)
            )
        return el("select", *options, **common)
    if kind == "file":
        return _file_control(common, value)
    if kind == "json":
        return el("textarea", value or "", rows=5, spellcheck="false", class_="code", placeholder="JSON", **common)
    if kind in ("integer", "number"):
        mode = "numeric" if kind == "integer" else "decimal"
        bounds = {"min": _bound(field.get("minimum")), "max": _bound(field.get("maximum"))}
        return el(
            "input",
            type="number",
            inputmode=mode,
            step=1 if kind == "integer" else "any",
            value=value,
            **bounds,
            **common,
        )
    longest = field.get("maxLength")
    lengths = {"maxlength": longest if isinstance(longest, int) else None}
    if kind == "long":
        return el("textarea", value or "", rows=4, **lengths, **common)
    return el("input", type=_INPUT_TYPES.get(str(field.get("format")), "text"), value=value, **lengths, **common)


def _file_control(common: dict[str, Any], value: str | None) -> Html:
    """A file that arrived is sent again by its value, when another field has to be corrected."""
    try:
        arrived = orjson.loads(value or "null")
    except orjson.JSONDecodeError:
        arrived = None
    if not is_file(arrived):
        return el("input", type="file", **common)
    again = el("input", type="hidden", name=common["name"], value=value)
    shown = el("p", f"{arrived.get('name')} was received. Choose another file to replace it.", class_="quiet")
    return join([again, shown, el("input", type="file", **{**common, "required": False})])


def _bound(value: Any) -> str | None:
    return as_json(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


ONCE = "once"  # the input that makes repeated posts of one loaded page the same submission


def ask(
    form: FormView,
    *,
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    error: str | None = None,
    extras: Extras | None = None,
    read_only: bool = False,
) -> Response:
    """The form. With `error` or `errors` what was filled in did not fit, and is kept (422)."""
    wrong = bool(errors or error)
    once = (typed or {}).get(ONCE) or secrets.token_urlsafe(18)
    return _sheet(
        form,
        el("p", form.text, class_="text") if form.text else None,
        el("p", error or "Check the marked fields.", class_="notice err", role="alert") if wrong else None,
        instead.read_only()
        if read_only
        else el(
            "form",
            el("input", type="hidden", name=ONCE, value=once),
            form_fields(form.schema, typed, errors or {}),
            el("div", el("button", form.submit, type="submit", class_="primary"), class_="actions"),
            method="post",
            enctype=encoding_of(form.schema),
        ),
        status=422 if wrong else 200,
        extras=extras,
    )


def submitted(form: FormView, run: RunView, extras: Extras | None = None) -> Response:
    """The page after a submission. Errors inside the run are for users who may see the run; the submission was received
    in any case, so this is not an error page."""
    ended = run.status == "succeeded"
    answer = run.response.get("body") if ended and run.response is not None else None
    if run.status in ("failed", "cancelled"):
        said = el("p", "Your submission was received, but it was not processed.", class_="notice err", role="alert")
    else:
        more = "" if ended else " It is being processed."
        said = el("p", f"Thank you. Your submission was received.{more}", class_="notice", role="status")
    return _sheet(
        form,
        said,
        el("p", form.done, class_="text") if form.done else None,
        el("section", value_view(answer), class_="shown", aria_label="Answer")
        if answer not in (None, "", {}, [])
        else None,
        el("p", el("a", "Submit another response", href=""), class_="quiet once"),
        status=200 if ended or run.status in ("failed", "cancelled") else 202,
        extras=extras,
    )


def _sheet(form: FormView, *main: Any, status: int, extras: Extras | None) -> Response:
    content: Html = join(el("h1", form.title), *main)
    return page(form.title, content, status=status, frame="letter", extras=extras)
