from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest

from executor.blocks.http.binding import Rules, bound_to, check_no_place, check_place, is_host, using
from executor.blocks.http.parts import parts_of
from executor.errors import BlockError


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("api.example.com", "api.example.com", True),
        ("api.example.com", "API.example.com.", True),
        ("api.example.com", "evil-api.example.com", False),
        ("api.example.com", "api.example.com.evil.test", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("api.example.com:443", "api.example.com", True),
        ("api.example.com:8443", "api.example.com", False),
        ("127.0.0.1:443", "127.0.0.1", True),
        ("[::1]", "::1", True),
        ("[::1]:443", "[::1]", True),
        ("[::1]:80", "::1", False),
    ],
)
def test_a_secret_goes_to_its_hosts_alone(pattern: str, host: str, fits: bool) -> None:
    assert is_host(pattern)
    with bound_to({"KEY": Rules([pattern])}):
        if fits:
            check_place("https", host, 443)
        else:
            with pytest.raises(BlockError, match="cannot be sent to"):
                check_place("https", host, 443)
    check_place("https", host, 443)


def test_all_secrets_of_a_request_must_permit_a_host() -> None:
    with bound_to({"A": Rules(["a.test", "b.test"])}), bound_to({"B": Rules(["b.test"])}):
        check_place("https", "b.test", 443)
        with pytest.raises(BlockError, match="B cannot be sent to a"):
            check_place("https", "a.test", 443)


def test_without_hosts_it_goes_nowhere() -> None:
    with bound_to({"KEY": Rules([])}), pytest.raises(BlockError, match="it has no hosts"):
        check_place("https", "a.test", 443)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.com", "a b", "http://a.test", "ftp://a.test:1", "a.test:0", "a.test/x", "*.*.test", "a..b", "ü.test"],
)
def test_what_is_no_host(text: str) -> None:
    assert not is_host(text)


def test_without_secrets_a_handler_may_be_closed_in_another_context() -> None:
    """As the garbage collector does it with one that is never resumed."""

    async def handler() -> None:
        with bound_to({}):
            await asyncio.sleep(0)

    abandoned = handler()
    copy_context().run(abandoned.send, None)
    abandoned.close()


HOSTS = {"A": Rules(["a.test"]), "B": Rules(["b.test"])}


def is_in(name: str, text: str) -> bool:
    return {"A": "value of a", "B": "value of b"}[name] in text


def test_what_a_request_is_made_of_counts() -> None:
    with bound_to(HOSTS, is_in):
        with pytest.raises(BlockError, match="cannot be sent"):
            check_place("https", "a.test", 443, [("body", "nothing of either")])  # not said: both count
        with using({"headers": {"Authorization": ["Bearer value of a"]}}, 7):
            check_place("https", "a.test", 443)
            with pytest.raises(BlockError, match="secret A cannot be sent to b"):
                check_place("https", "b.test", 443)
            with pytest.raises(BlockError, match="secret A cannot be written"):
                check_no_place("the log")
        with using("nothing of either"):
            check_place("https", "c.test", 443)
            check_no_place("the log")
        with pytest.raises(BlockError):
            check_place("https", "c.test", 443)


def test_what_is_found_in_a_request_counts_whatever_it_is_said_to_be_made_of() -> None:
    with bound_to(HOSTS, is_in), using(None):
        check_place("https", "c.test", 443, parts_of("https://c.test/", {}, b"\xff"))
        for sent in ("https://c.test/?x=value of b", b"{value of b}"):
            with pytest.raises(BlockError, match="secret B cannot be sent to c"):
                check_place("https", "c.test", 443, [("body", sent)])


def test_within_a_part_nothing_counts_again() -> None:
    with bound_to(HOSTS, is_in), using("value of a"), using("value of b"):
        check_place("https", "c.test", 443)


def test_without_a_way_to_find_it_a_secret_counts_always() -> None:
    with bound_to(HOSTS), using("nothing"), pytest.raises(BlockError):
        check_place("https", "c.test", 443)
