from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.pages.forms import form_fields, read_form
from server.pages.html import Html, el, join, value_view

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "maxLength": 2000, "description": "a <note>"},
        "mail": {"type": "string", "format": "email", "default": "a@b"},
        "count": {"type": "integer", "minimum": 1},
        "rate": {"type": ["number", "null"]},
        "sure": {"type": "boolean"},
        "size": {"enum": ["s", 2]},
        "extra": {"type": "object"},
    },
    "required": ["count"],
}


def test_each_type_gets_its_control() -> None:
    html = form_fields(SCHEMA, None, {})
    assert '<textarea name="field.note" id="field.note"' in html.replace('rows="4" maxlength="2000" ', "")
    assert 'type="email" value="a@b"' in html
    assert (
        '<input type="number" inputmode="numeric" step="1" min="1" name="field.count" id="field.count" required>'
        in html
    )
    assert 'step="any"' in html
    assert 'type="checkbox" name="field.sure"' in html
    assert '<option value="&quot;s&quot;">s</option>' in html and '<option value="2">2</option>' in html
    assert 'placeholder="JSON"' in html
    assert "a &lt;note&gt;" in html


def test_answers_become_json_values() -> None:
    typed = {
        "field.note": "two\r\nlines",
        "field.mail": "",
        "field.count": " 3 ",
        "field.rate": "1,5",
        "field.sure": "true",
        "field.size": "2",
        "field.extra": '{"a": [1]}',
        "other": "ignored",
    }
    values, errors = read_form(SCHEMA, typed)
    assert errors == {}
    assert values == {"note": "two\nlines", "count": 3, "rate": 1.5, "sure": True, "size": 2, "extra": {"a": [1]}}


def test_what_cannot_be_read_is_said_at_its_field() -> None:
    values, errors = read_form(
        SCHEMA, {"field.count": "many", "field.rate": "true", "field.extra": "{", "field.size": "x"}
    )
    assert values == {"sure": False}
    assert set(errors) == {"count", "rate", "extra", "size"}
    assert read_form(SCHEMA, {})[1] == {"count": "Enter a value."}
    assert read_form(SCHEMA, {"field.count": "9" * 30})[1] == {"count": "This number is too large."}


def test_what_was_typed_stays() -> None:
    html = form_fields(SCHEMA, {"field.count": "many", "field.sure": "true"}, {"count": "Enter a whole number."})
    assert 'value="many"' in html and "Enter a whole number." in html and 'aria-invalid="true"' in html
    assert "a@b" not in html, "an emptied field is not filled with its default again"


@pytest.mark.parametrize("schema", [None, {}, [], "x", {"properties": 5}, {"properties": {"a": 5}, "required": 7}])
def test_odd_schemas_do_not_break_the_page(schema: Any) -> None:
    form_fields(schema, None, {})
    read_form(schema, {"field.a": "1"})


def test_what_one_action_needs_is_not_marked_optional() -> None:
    """The form cannot require it: the other action is without it."""
    schema = {"properties": {"id": {"type": "integer", "x-ui": {"needed": True}}, "note": {"type": "string"}}}
    html = form_fields(schema, None, {})
    assert html.count("(optional)") == 1 and " required" not in html


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(-(2**53), 2**53),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_values_are_text_never_markup(value: Any) -> None:
    html = value_view(value)
    names = ("dl", "dt", "dd", "ol", "li", "span", "code", "div", "table", "thead", "tbody", "tr", "th", "td")
    allowed = tuple(f"<{slash}{name}" for name in names for slash in ("", "/"))
    for position, char in enumerate(html):
        if char == "<":
            assert html[position:].startswith(allowed)


@pytest.mark.parametrize("item", ["text", {"a": 1}])
def test_what_is_left_out_of_a_long_list_is_counted(item: Any) -> None:
    assert "and 50 more, not shown here" in value_view([item] * 250)
    assert "more, not shown" not in value_view([item] * 200)


def test_elements_escape() -> None:
    assert el("a", "<x>", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;">&lt;x&gt;</a>'
    assert el("input", disabled=True, value=None, checked=False) == "<input disabled>"
    assert join(["a&", [Html("<b>")], None]) == "a&amp;<b>"
