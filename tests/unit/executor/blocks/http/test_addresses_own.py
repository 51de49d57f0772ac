"""Which addresses of this server its own workflows may reach."""

import httpx
import pytest

from executor.blocks.http.addresses import Own

OWN = Own("127.0.0.1:8765", ["https://weft.example/flows"])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8765/demo/echo", "http://127.0.0.1:8765/demo/echo?a=/api/../x",
        "http://127.0.0.1:8765/hooks/hk:start", "http://127.0.0.1:8765/hooks/my%20flow%3Astart",
        "https://weft.example/flows/hooks/a", "http://127.0.0.1.:8765/demo/echo",
    ],
)  # fmt: skip
def test_doors(url: str) -> None:
    assert OWN.is_at(httpx.URL(url))
    assert OWN.opens(httpx.URL(url))


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/api/waits", "/demo", "/demo/", "/demo/../api/waits", "/demo/%2e%2e/api/waits", "/demo//echo",
        "/demo/..%2fapi%2fwaits", "//demo/echo", "/demo/.%2E/api", "/demo/%252e%252e/api", "/demo/..%5capi",
        "/demo/..\\api", "/demo/echo/../../api/waits", "/demo/echo/x", "/%64emo/../api", "/demo/%00", "/DEMO/echo",
        "/demo;/echo", "/hooks/", "/hooks/..", "/hooks/%2e%2e", "/hooks/a%2fb", "/resume/token", "/demo/..",
        "/demo/%c0%ae%c0%ae/api", "/demo%2fecho",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["http://127.0.0.1:8765", "https://weft.example/flows"])
def test_everything_else_is_closed(path: str, place: str) -> None:
    assert not OWN.opens(httpx.URL(place + path))


def test_what_is_in_front_of_the_path_counts() -> None:
    assert not OWN.is_at(httpx.URL("https://weft.example/other/demo/echo")), "it is another program's"
    assert OWN.is_at(httpx.URL("https://weft.example/other/%2e%2e/flows/api"))
    assert not OWN.opens(httpx.URL("https://weft.example/demo/echo"))
    assert OWN.is_at(httpx.URL("https://weft.example/flows"))
    assert not OWN.is_at(httpx.URL("http://127.0.0.1:8766/demo/echo"))
    assert OWN.places == ["127.0.0.1:8765", "weft.example:443"]
    assert Own("[::1]:80").places == ["[::1]:80"]
