"""The interface: one page for all its addresses, under the strict policy; a page that says how to build
it where it was not built."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from executor.open.engine import Engine
from server import ui
from server.app import create_app
from server.settings import Settings

PAGES = ("/", "/w/abc", "/loom/abc", "/runs", "/runs/abc", "/approvals", "/knowledge/abc", "/usage", "/settings")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "_web"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>weft</title>")
    (built / "assets" / "index-abc.js").write_text("export {}")
    (built / ui.LICENSES).write_text("# Licences")
    return built


@pytest.fixture
async def client(settings: Settings, engine: Engine, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(settings, engine, folder)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as client:
        yield client


@pytest.mark.parametrize("path", PAGES)
async def test_every_address_gives_the_page(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 200 and "<title>weft</title>" in response.text
    assert response.headers["content-security-policy"] == ui.POLICY
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-frame-options"] == "DENY"


async def test_the_policy_allows_nothing_from_elsewhere() -> None:
    assert "default-src 'self'" in ui.POLICY and "unsafe" not in ui.POLICY and "http" not in ui.POLICY


async def test_assets_may_be_cached_forever(client: httpx.AsyncClient) -> None:
    response = await client.get("/assets/index-abc.js")
    assert response.headers["cache-control"] == ui.FOR_EVER
    assert response.headers["content-type"].startswith("text/javascript")
    again = await client.get("/assets/index-abc.js", headers={"if-none-match": response.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, ui.FOR_EVER)
    missing = await client.get("/assets/index-old.js")
    assert (missing.status_code, missing.headers.get("cache-control")) != (200, ui.FOR_EVER)
    assert (await client.get("/assets/../index.html")).status_code == 404


async def test_licences_are_there(client: httpx.AsyncClient) -> None:
    assert (await client.get("/third-party-licenses.md")).text == "# Licences"


async def test_the_page_asks_for_the_token_too(engine: Engine, settings: Settings, folder: Path) -> None:
    app = create_app(replace(settings, token="the-token-of-this-test"), engine, folder)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as locked:
        for path in PAGES:
            response = await locked.get(path)
            assert response.status_code == 401 and "Sign in" in response.text
        assert (await locked.get("/assets/index-abc.js")).status_code == 200


@pytest.mark.parametrize("path", PAGES)
async def test_where_it_was_not_built_a_page_says_how_to_build_it(
    engine: Engine, settings: Settings, path: str
) -> None:
    app = create_app(settings, engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as client:
        response = await client.get(path)
    assert response.status_code == 200 and "<code>make serve</code>" in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"] and "<script" not in response.text


async def test_the_page_that_signs_in_loads_one_script(engine: Engine, settings: Settings) -> None:
    app = create_app(replace(settings, token="the-token-of-this-test"), engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8765") as client:
        for page in (await client.get("/"), await client.get("/sign-in")):
            assert page.text.count("<script") == 1 and 'src="/static/sign_in.js"' in page.text
        assert (await client.get("/static/sign_in.js")).status_code == 200


def test_the_lock_names_no_registry() -> None:
    """The installation uses the registry of the user's npm settings."""
    lock = Path(__file__).parents[3] / "web" / "package-lock.json"
    assert '"resolved"' not in lock.read_text() and '"integrity"' in lock.read_text()


def test_built_is_where_the_page_is(folder: Path, tmp_path: Path) -> None:
    assert ui.built(folder) == folder
    assert ui.built(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "gzip"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("*", "gzip"),
        ("br; q=0.0, *;q=0", None),
        ("identity", None),
        ("", None),
    ],
)
async def test_assets_are_sent_compressed(
    client: httpx.AsyncClient, folder: Path, accepted: str, encoding: str | None
) -> None:
    """Editor bug 18: some 800 KB were sent where 250 KB do. Only the compressed file is kept."""
    script = b"export const a = 1;" * 100
    asset = folder / "assets" / "large-abc.js"
    asset.with_name("large-abc.js.gz").write_bytes(gzip.compress(script, mtime=0))
    async with client.stream("GET", "/assets/large-abc.js", headers={"accept-encoding": accepted}) as response:
        raw = b"".join([piece async for piece in response.aiter_raw()])
    assert response.headers.get("content-encoding") == encoding
    assert response.headers["content-type"].startswith("text/javascript")
    assert (response.headers["vary"], response.headers["cache-control"]) == ("Accept-Encoding", ui.FOR_EVER)
    assert raw == {None: script, "gzip": gzip.compress(script, mtime=0)}[encoding]
    if encoding is not None:
        known = {"accept-encoding": accepted, "if-none-match": response.headers["etag"]}
        again = await client.get("/assets/large-abc.js", headers=known)
        assert (again.status_code, again.headers["vary"]) == (304, "Accept-Encoding")


async def test_assets_without_a_compressed_form_are_sent_as_they_are(client: httpx.AsyncClient) -> None:
    response = await client.get("/assets/index-abc.js", headers={"accept-encoding": "gzip"})
    assert response.text == "export {}" and "content-encoding" not in response.headers
