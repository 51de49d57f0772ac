"""One mailbox an item."""

import pytest

from executor.blocks.types.mail import items_of, mailbox, mailboxes
from executor.errors import BlockError
from executor.kernel.values.resolve import Filled


def filled(*parts: tuple[str, bool]) -> Filled:
    """Text of parts, each data or not."""
    text, data = "", []
    for part, is_data in parts:
        if is_data:
            data.append((len(text), len(text) + len(part)))
        text += part
    return Filled(text, tuple(data))


def test_commas_of_the_author_separate_and_commas_of_data_do_not() -> None:
    assert items_of("a@x.y, b@x.y,,", "to") == ["a@x.y", " b@x.y"]
    assert items_of('"A, B" <a@x.y>, b@x.y', "to") == ['"A, B" <a@x.y>', " b@x.y"]
    assert items_of(filled(("a,b", True), (" <a@x.y>,c@x.y", False)), "to") == ["a,b <a@x.y>", "c@x.y"]
    assert items_of(filled(('"', False), ('x"', True), (', y" <a@x.y>', False)), "to") == ['"x", y" <a@x.y>']
    assert items_of(["a@x.y", " "], "to") == ["a@x.y"]
    assert items_of(None, "to") == items_of("", "to") == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a@x.y", ("", "a@x.y")),
        (" <a@x.y> ", ("", "a@x.y")),
        ("Ann Lee <a@x.y>", ("Ann Lee", "a@x.y")),
        ('"Lee, \\"Ann\\"" <a@x.y>', ('Lee, "Ann"', "a@x.y")),
        ("Lee, Ann <a@x.y>", ("Lee, Ann", "a@x.y")),
        ("b@x.y, <a@x.y>", ("b@x.y,", "a@x.y")),
        ("jürgen@müller.example", ("", "jürgen@müller.example")),
    ],
)
def test_a_mailbox(item: str, expected: tuple[str, str]) -> None:
    assert mailbox(item, "to") == expected


@pytest.mark.parametrize(
    "item",
    ["a", "@x.y", "a@", "a@b@c", "a b@x.y", "a@x.y;b@x.y", "g:a@x.y", "g: a@x.y;", "a@x.y,b@x.y", "(c)a@x.y", '"a"@x.y',
     "a@[127.0.0.1]", "A <a@x.y", "=?utf-8?q?a?=@x.y", "A <a@x.y> b"],
)  # fmt: skip
def test_what_is_no_mailbox(item: str) -> None:
    with pytest.raises(BlockError, match="not a mail address") as caught:
        mailbox(item, "to")
    assert caught.value.code == "params_invalid"


def test_something_without_an_address_is_an_error() -> None:
    assert mailboxes("  ", "cc") == mailboxes([], "cc") == []
    for given in (",", [" "], 5, {"a": 1}, [1], "a@x.y\nb@x.y"):
        with pytest.raises(BlockError):
            mailboxes(given, "cc")
