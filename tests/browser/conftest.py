"""One server process and one browser for the tests of this folder. Most tests share a context, in which nothing is left
after each of them; `contexts` opens others.

A test fails when its pages wrote an error to the console, threw, or asked another host for anything, whatever else it
looked at. Nothing here is skipped: without a browser, or without the built interface, every test fails and says what to
do.

Playwright's synchronous API keeps an event loop of its own marked as running in this thread, so what it starts belongs
to the package, not to the session: the asyncio tests of other folders come after it in the same process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, expect, sync_playwright

from server import ui
from tests.browser.editor import Editor
from tests.browser.get_chromium import NoBrowser, find
from tests.support.forked import Forks
from tests.support.server import SyncServerProcess

HERE = Path(__file__).parent
BLOCKS = HERE / "blocks"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--process-per-site",  # see `shared`
)
PATIENCE_MS = 60_000  # a machine may be busy with other things
TEST_S = 600  # the first one may have to fetch a browser
WINDOW = {"width": 1280, "height": 800}
KEEPS_PROCESS = "/api/version"

Contexts = Callable[..., "Watched"]
Servers = Callable[..., SyncServerProcess]


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one group: one worker has the browser, the others go on with the rest. What uses the fixtures of this
    folder from elsewhere belongs to it."""
    for item in items:
        needs = "playwright" in getattr(item, "fixturenames", ())
        if (needs or item.path.is_relative_to(HERE)) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_S))


class Watched:
    """A context whose pages are watched. `allow` names console errors that a test causes on purpose, as a regex."""

    def __init__(self, context: BrowserContext, own: str) -> None:
        self.context = context
        self.origin = own
        self.own = urlsplit(own).netloc
        self.trouble: list[str] = []
        self.allowed: list[str] = []
        context.on("page", self._watch)
        context.on("request", self._asked)

    def page(self) -> Page:
        return self.context.new_page()

    def leave(self) -> None:
        """Leave nothing in the context, which other tests use after this one."""
        stays, *pages = self.context.pages
        for page in pages:
            page.close()
        self.context.remove_listener("page", self._watch)
        self.context.remove_listener("request", self._asked)
        self.context.unroute_all()
        self.context.clear_cookies()
        self.context.clear_permissions()
        debugger = self.context.new_cdp_session(stays)
        debugger.send("Storage.clearDataForOrigin", {"origin": self.origin, "storageTypes": "all"})
        debugger.detach()

    def allow(self, pattern: str) -> None:
        self.allowed.append(pattern)

    def check(self) -> None:
        left = [each for each in self.trouble if not any(re.search(pattern, each) for pattern in self.allowed)]
        assert not left, "the pages had trouble:\n" + "\n".join(left)

    def _watch(self, page: Page) -> None:
        page.on(
            "console",
            lambda said: (
                self.trouble.append(f"{said.text} ({said.location.get('url')})") if said.type == "error" else None
            ),
        )
        page.on("pageerror", lambda error: self.trouble.append(f"thrown: {error.stack or error.message}"))

    def _asked(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != self.own:
            self.trouble.append(f"asked another host: {request.url}")


@pytest.fixture(scope="session")
def built() -> None:
    if ui.built() is None:
        pytest.fail(
            "The interface is not built: run `npm ci && npm run build` in web/, or `make install`.", pytrace=False
        )


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    try:
        found = find()
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)
    env: dict[str, str | float | bool] = {**os.environ, **found.env}
    try:
        started = playwright.chromium.launch(executable_path=found.path, headless=True, args=list(FLAGS), env=env)
    except Error as error:
        pytest.fail(f"{found.path} does not start: install chromium, or set WEFT_CHROMIUM.\n{error}", pytrace=False)
    yield started
    started.close()


@pytest.fixture(scope="package")
def forks(built: None) -> Iterator[Forks]:
    found = Forks()
    yield found
    found.close()


@pytest.fixture(scope="package")
def server(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    started = SyncServerProcess(tmp_path_factory.mktemp("browser"), {"PYTHONPATH": str(BLOCKS)}, forks=forks)
    yield started
    try:
        started.stop(PATIENCE_MS / 1000)
    finally:
        if started.running:
            started.kill()


@pytest.fixture
def servers(forks: Forks, tmp_path: Path) -> Iterator[Servers]:
    """Start a server of the test's own, on an empty database; calling it again starts another on the same one."""
    started: list[SyncServerProcess] = []

    def start(log: Path | None = None, **environ: str) -> SyncServerProcess:
        started.append(SyncServerProcess(tmp_path, {"PYTHONPATH": str(BLOCKS), **environ}, log, forks=forks))
        return started[-1]

    yield start
    for each in started:
        if each.running:
            each.kill()


def _open(browser: Browser, base_url: str, **options: Any) -> BrowserContext:
    context = browser.new_context(**{"viewport": WINDOW, "reduced_motion": "reduce", "base_url": base_url, **options})
    context.set_default_timeout(PATIENCE_MS)
    return context


@pytest.fixture(scope="package")
def shared(browser: Browser, server: SyncServerProcess) -> Iterator[BrowserContext]:
    """The context of most tests. A page of it stays open, and with it the process of its pages, which has compiled the
    editor: that is a third of the time of a short test."""
    context = _open(browser, server.url)
    context.new_page().goto(KEEPS_PROCESS)
    yield context
    context.close()


@pytest.fixture
def contexts(browser: Browser, server: SyncServerProcess, servers: Servers) -> Iterator[Contexts]:
    """Open contexts for this test alone, such as a phone: `contexts(viewport={...})`. They are closed before `servers`
    end: pages go on asking."""
    opened: list[Watched] = []

    def open_one(base_url: str = server.url, **options: Any) -> Watched:
        opened.append(Watched(_open(browser, base_url, **options), base_url))
        return opened[-1]

    yield open_one
    for each in opened:
        each.context.close()
    for each in opened:
        each.check()


@pytest.fixture
def watched(shared: BrowserContext, server: SyncServerProcess) -> Iterator[Watched]:
    """Use `contexts` or `alone` for what stays in a context, such as `page.clock` and scripts for its pages."""
    found = Watched(shared, server.url)
    yield found
    found.leave()
    found.check()


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page()


@pytest.fixture
def editor(page: Page, server: SyncServerProcess) -> Editor:
    return Editor(page, server.url)


@pytest.fixture
def alone(contexts: Contexts, server: SyncServerProcess) -> Editor:
    """An editor in a context for this test alone."""
    return Editor(contexts().page(), server.url)
