"""Where a redirect may lead, and what goes along. Nothing is dialled here."""

from __future__ import annotations

import httpcore
import pytest

from executor.blocks.http.exchanges import Hop, parse_url
from executor.errors import BlockError


def first(
    method: str = "GET",
    url: str = "https://a.example/x",
    content: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Hop:
    return Hop.first(method, parse_url(url), headers or {}, content)


def redirect(location: str, status: int = 302) -> httpcore.Response:
    return httpcore.Response(status, headers=[(b"Location", location.encode())])


@pytest.mark.parametrize(
    "url", ["", "ftp://a.example", "https://", "http://a:b@c.example", "http://a.example:99999", "http://a b.example"]
)
def test_what_cannot_be_dialled_is_refused(url: str) -> None:
    with pytest.raises(BlockError) as refused:
        parse_url(url)
    assert refused.value.code == "url_invalid"


def test_no_location_is_no_redirect() -> None:
    assert first().follow(httpcore.Response(302)) is None
    assert first().follow(redirect("/y", 200)) is None


def test_a_relative_location_stays_at_the_origin_with_all_headers() -> None:
    hop = first(headers={"Authorization": "secret"}).follow(redirect("/y#z"))
    assert hop is not None
    assert (str(hop.url), hop.headers) == ("https://a.example/y", {"Authorization": "secret"})


def test_secrets_do_not_go_along_to_another_origin() -> None:
    headers = {"Authorization": "secret", "Accept": "text/plain"}
    hop = first(headers=headers).follow(redirect("https://b.example/"))
    assert hop is not None
    assert hop.headers == {"Accept": "text/plain"}
    assert hop.named == "a.example"


def test_a_form_is_not_sent_again_but_read() -> None:
    hop = first("POST", content=b"n=1", headers={"Content-Type": "text/plain"}).follow(redirect("/done", 303))
    assert hop is not None
    assert (hop.method, hop.content, hop.headers) == ("GET", None, {})


@pytest.mark.parametrize(
    ("location", "status"),
    [("https://b.example/", 307), ("file:///etc/passwd", 302), ("https://u:p@a.example/", 302), ("http://[", 302)],
)
def test_redirects_that_are_refused(location: str, status: int) -> None:
    with pytest.raises(BlockError) as refused:
        first("POST", content=b"data").follow(redirect(location, status))
    assert refused.value.code == "redirect_refused"


def test_messages_do_not_show_the_query() -> None:
    assert first(url="https://a.example/x?token=secret#top").shown == "GET https://a.example/x"
