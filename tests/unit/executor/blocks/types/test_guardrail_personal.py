"""Personal data by its form."""

import time

import pytest

from executor.blocks.types.guardrail import KINDS, find_personal


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Write to ada.l+x@mail.example.org, or bob@example.com.", {"email": 2}),
        ("DE89 3704 0044 0532 0130 00 or GB82WEST12345698765432", {"iban": 2}),
        ("DE89 3704 0044 0532 0130 01", {}),
        ("4111 1111 1111 1111, 5500-0000-0000-0004", {"credit_card": 2}),
        ("4111 1111 1111 1112, 0000 0000 0000 0000", {}),
        ("078-05-1120 but not 666-12-3456", {"us_ssn": 1}),
        ("from 192.168.1.20, version 1.2.3, 999.1.1.1", {"ip_address": 1}),
        ("+49 421 218 5000, (0421) 2185000", {"phone": 2}),
        ("In 2026 we sold 1,234,567 pieces, order 12345678.", {}),
    ],
)
def test_what_is_found(text: str, counts: dict[str, int]) -> None:
    assert find_personal(text).counts == counts


def test_marks_stand_in_their_places() -> None:
    found = find_personal("Ada, ada@example.org, 192.168.1.20")
    assert found.masked == "Ada, [EMAIL], [IP_ADDRESS]"
    assert find_personal("ada@example.org", ["iban"]).masked == "ada@example.org"


@pytest.mark.parametrize("piece", ["a" * 64, "1 ", "0", "a.", "@", "DE12 ", "1.", "+1 ", "a@a.", "(0", "-1"])
def test_time_is_by_length(piece: str) -> None:
    """A quarter of a megabyte of what a pattern could get lost in."""
    before = time.thread_time()
    find_personal(piece * (250_000 // len(piece)), KINDS)
    assert time.thread_time() - before < 5
