from __future__ import annotations

import base64
import json
from urllib.parse import quote_plus, urlencode

import pytest

from executor.blocks.http import handles
from executor.blocks.http.binding import Rules, bound_to, derived, opened, opened_bytes
from executor.blocks.http.handles import in_authority, new_handle, written_as
from executor.errors import BlockError

VALUE = 'ä "quoted"\\ & p/ct %+\n'


def test_a_handle_is_written_as_the_place_needs_it() -> None:
    handle = new_handle()
    forms = {"r": VALUE, "j": json.dumps(VALUE)[1:-1], "f": quote_plus(VALUE)}
    forms["b"] = base64.b64encode(VALUE.encode()).decode()
    for how, expected in forms.items():
        text = written_as(f"a{handle}b{handle}", how)  # type: ignore[arg-type]
        assert handles.filled(text, {handle: VALUE}.__getitem__) == f"a{expected}b{expected}"
        assert handles.filled_bytes(text.encode(), {handle: VALUE}.__getitem__) == f"a{expected}b{expected}".encode()
        assert handles.in_first_form(text) == f"a{handle}b{handle}" and handles.handles_in(text) == [handle]


def test_no_encoder_changes_it() -> None:
    handle = new_handle()
    assert handle in json.dumps(handle) and handle in urlencode({"a": handle}) and handle == handle.lower()
    assert handle != new_handle()


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://{}/", True),
        ("{}", True),
        (" {}://a/", True),
        ("http://a:{}@b/", True),
        ("http:\\\\{}\\x", True),
        ("//{}", True),
        ("http://a/{}", False),
        ("http://a?{}", False),
        ("http://a/x#{}", False),
        ("/{}", False),
    ],
)
def test_a_handle_in_front_of_the_path(url: str, found: bool) -> None:
    assert in_authority(url.format(new_handle())) == found
    assert not in_authority(url.format("x"))


def test_it_is_opened_where_its_secret_is_used_alone() -> None:
    handle, other = new_handle(), new_handle()
    known = {handle: ("KEY", VALUE), other: ("OTHER", "value")}
    with pytest.raises(BlockError, match="outside of the block call"):
        opened(handle)
    with bound_to({"KEY": Rules([])}, None, known.get):
        assert opened(f"a {handle}") == f"a {VALUE}" and opened_bytes(handle.encode()) == VALUE.encode()
        with pytest.raises(BlockError, match="outside of the block call"):
            opened(other)
        made = derived(f"user:{handle}", str.upper)
        assert made != handle and opened(made) == f"user:{VALUE}".upper() and derived("plain", str.upper) == "PLAIN"
    with pytest.raises(BlockError):
        opened(made)
