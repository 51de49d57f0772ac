import base64
import json
import re
from typing import Any
from urllib.parse import quote, quote_plus

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.kernel.values.redact import MARK, Redactor

SECRET = 'p@ss "w/ö+rd'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    ],
)
def test_every_form_is_found(form: str) -> None:
    assert Redactor([SECRET]).redact(f"a {form} b {form}") == f"a {MARK} b {MARK}"


def test_short_secrets_are_left_alone() -> None:
    assert Redactor(["12345", ""]).redact("12345") == "12345"
    assert Redactor(["123456"]).redact("x123456y") == f"x{MARK}y"


def test_the_longest_secret_wins() -> None:
    assert Redactor(["secret", "secret-longer"]).redact("secret-longer secret") == f"{MARK} {MARK}"


def test_json_stays_json() -> None:
    redactor = Redactor([SECRET, "123456", "true,"])
    data = orjson.dumps({SECRET: [123456, "x123456", 1234567, True, None], "deep": {"a": f"-{SECRET}-"}})
    assert orjson.loads(redactor.redact_json(data)) == {
        MARK: [MARK, f"x{MARK}", f"{MARK}7", True, None],
        "deep": {"a": f"-{MARK}-"},
    }


def test_json_without_a_secret_is_the_same_bytes() -> None:
    data = b'{"a": 1}'
    assert Redactor(["secret"]).redact_json(data) is data
    assert Redactor([]).redact_json(data) is data


def test_escapes_do_not_hide_a_secret() -> None:
    assert Redactor(["secret"]).redact_json(rb'["\u0073ecret"]') == f'["{MARK}"]'.encode()


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=6), st.text(st.characters(exclude_categories=["Cs"])))
def test_no_secret_survives(secret: str, around: str) -> None:
    value: Any = {"a": around + secret + around, secret: [secret]}
    redacted = orjson.loads(Redactor([secret]).redact_json(orjson.dumps(value)))

    def texts(item: Any) -> list[str]:
        if isinstance(item, dict):
            return [t for k, v in item.items() for t in (k, *texts(v))]
        if isinstance(item, list):
            return [t for v in item for t in texts(v)]
        return [item]

    assert all(secret not in text or secret in MARK for text in texts(redacted))


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("after", ["", "x", "xy", "xyz"])
def test_base64_of_something_longer_hides_nothing(before: str, after: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(before.encode() + SECRET.encode() + after.encode()).decode()
        redacted = Redactor([SECRET]).redact(f"Basic {text}")
        left = redacted.replace(MARK, "").removeprefix("Basic ")
        assert MARK in redacted and len(left) <= len(encode(f"{before}{after}".encode())) + 4


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_stream_hides_a_secret_in_pieces(size: int) -> None:
    text = "one secret two secre three sec"
    sent: list[str] = []
    stream = Redactor(["secret"]).stream(sent.append)
    for at in range(0, len(text), size):
        stream(text[at : at + size])
    stream.end()
    assert "".join(sent) == f"one {MARK} two secre three sec"


def test_a_stream_holds_back_no_more_than_it_must() -> None:
    sent: list[str] = []
    stream = Redactor(["secret"]).stream(sent.append)
    stream("no s")
    assert sent == ["no "]
    stream("un")
    assert sent == ["no ", "sun"]
    stream("secre")
    stream.end()
    assert "".join(sent) == "no sunsecre", "five letters are no secret"


def test_what_was_cut_off_in_a_secret_goes_too() -> None:
    redactor = Redactor(["long-secret"])
    assert redactor.redact_cut("it said long-sec") == f"it said {MARK}"
    assert redactor.redact_cut("it said long") == "it said long"
    assert redactor.redact_cut("it said long-secret") == f"it said {MARK}"


@given(st.lists(st.sampled_from(["first-secret", "other-secret", "[A/0]", "[A/0", "[", "]", "A/0]", "x"]), max_size=6))
def test_what_differs_is_labelled_differently(parts: list[str]) -> None:
    """And what holds nothing that matters stays as it is."""
    redactor = Redactor({"A": "first-secret", "B": "other-secret"})
    text = "".join(parts)
    label = redactor.label(text)
    assert not any(secret in label for secret in ("first-secret", "other-secret"))
    marks = {"[[": "[", "[A/0]": "first-secret", "[B/0]": "other-secret"}
    read = re.sub(r"\[\[|\[[AB]/0\]", lambda match: marks[match[0]], label)
    assert text == (read if re.search(r"\[[^\[\]]*/0\]", label) else label)
