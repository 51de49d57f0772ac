"""A connection is made, tested and signed in to where it is needed: only what the service asks for, covered, and only
for its hosts.

A server of the test plays the services and the provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import Contexts, Servers, Watched
from tests.browser.editor import Editor, document
from tests.browser.test_sign_in import REFUSED, sign_in, start
from tests.support.server import SyncServerProcess

TOKEN = "xoxb-of-the-test"
TABLES = {"Authorization": f"Bearer {TOKEN}"}


class Played(BaseHTTPRequestHandler):
    """Slack's auth.test, an address to check, and a provider of OAuth 2 at which everyone agrees."""

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if self.path.startswith("/authorize?"):
            self.send_response(302)
            back = urlencode({"state": asked["state"], "code": "a-code-of-the-test"})
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
            return
        known = TOKEN in self.headers.get("Authorization", "") + self.headers.get("X-Api-Key", "")
        self._answer(200 if known else 401, {"me": "grace"} if known else {"message": "Who are you?"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            return self._answer(200, {"access_token": TOKEN, "token_type": "bearer"})
        known = TOKEN in self.headers.get("Authorization", "")
        said = {"ok": True, "user": "grace", "team": "Looms"} if known else {"ok": False, "error": "invalid_auth"}
        return self._answer(200, said)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def played() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Played)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def begin(servers: Servers, contexts: Contexts, place: str) -> tuple[SyncServerProcess, Watched, Page]:
    """A server that may ask the played services, and an administrator who is signed in."""
    server = servers(WEFT_TOKEN="", WEFT_ALLOW_PRIVATE=place)
    watched = contexts(server.url)
    watched.allow(REFUSED)
    page = watched.page()
    sign_in(page, server.sign_in_link())
    return server, watched, page


def put(server: SyncServerProcess, page: Page, name: str, **spec: Any) -> None:
    stored = page.request.put(
        f"{server.url}/api/connections/{name}",
        data={"kind": "bearer", "secret": "another token", **spec},
        headers={"origin": server.url},
    )
    assert stored.ok, stored.text()


def stored(server: SyncServerProcess, page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.request.get(f"{server.url}/api/connections").json()["connections"]
    return found


def open_block(server: SyncServerProcess, page: Page, block: dict[str, Any]) -> Editor:
    editor = Editor(page, server.url)
    made = page.request.post(
        f"{server.url}/api/drafts",
        data={"name": "tell", "document": document({"s": {"at": [288, 0], **block}}, [("start", "s")])},
        headers={"origin": server.url},
    ).json()
    page.goto(f"/w/{made['id']}")
    editor.is_ready("s")
    editor.select("s")
    return editor


def slack(place: str = "", **params: Any) -> dict[str, Any]:
    more = {"base_url": f"http://{place}"} if place else {}
    return {"type": "connector.slack", "name": "Tell", "params": {"channel": "C1", "text": "Hi", **more, **params}}


def test_a_connection_is_made_in_the_field_of_a_block(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    for name, host in (("local", "127.0.0.1"), ("chat", "slack.com")):
        put(server, page, name, hosts=[host])
    editor = open_block(server, page, slack())
    field = editor.at("field-connection")
    expect(field.locator("option")).to_have_text(["None", "chat"])
    expect(page.get_by_text("1 other is not for slack.com.")).to_be_visible()
    editor.at("connect-connection").click()
    dialog = page.get_by_role("dialog", name="Connect Slack")
    expect(editor.at("connect-kind").locator("option")).to_have_text(["Bot token", "Sign in with Slack"])
    expect(dialog.get_by_role("textbox")).to_have_count(2)  # a token, and a name
    secret = editor.at("connect-secret")
    expect(secret).to_have_attribute("type", "password")
    secret.fill(TOKEN)
    dialog.get_by_role("button", name="Show bot token").click()
    expect(secret).to_have_attribute("type", "text")
    dialog.get_by_role("button", name="Hide bot token").click()
    expect(secret).to_have_attribute("type", "password")
    expect(dialog).to_contain_text("It is sent only to slack.com.")
    expect(editor.at("connect-name")).to_have_value("slack")
    editor.at("connect-send").click()
    expect(dialog).to_have_count(0)
    expect(field).to_have_value("slack")
    expect(page.locator("body")).not_to_contain_text(TOKEN)
    editor.is_saved()
    made = {each["name"]: each for each in stored(server, page)}["slack"]
    assert (made["kind"], made["hosts"], made["check"]) == (
        "bearer", ["slack.com"], "POST https://slack.com/api/auth.test",
    )  # fmt: skip


def test_a_connection_is_tested_before_it_is_stored_and_in_the_field(servers: Servers, contexts: Contexts) -> None:
    with played() as place:
        server, _, page = begin(servers, contexts, place)
        put(server, page, "elsewhere", hosts=["api.example.com"])
        editor = open_block(server, page, slack(place, connection="elsewhere"))
        result = page.locator("[data-inspector] .tested")
        editor.at("test-connection").click()
        expect(result).to_have_attribute("data-outcome", "hosts")
        expect(result).to_contain_text("Not one of its hosts")

        editor.at("connect-connection").click()
        dialog = page.get_by_role("dialog", name="Connect Slack")
        editor.at("connect-secret").fill("a wrong token")
        test = editor.at("connect-test")
        test.click()
        inside = dialog.locator(".tested")
        expect(inside).to_have_attribute("data-outcome", "refused")
        expect(inside).to_contain_text("invalid_auth")
        assert [each["name"] for each in stored(server, page)] == ["elsewhere"]  # it is not stored for that
        editor.at("connect-name").fill("bot")
        editor.at("connect-send").click()
        expect(dialog).to_have_count(0)
        assert {each["name"]: each["hosts"] for each in stored(server, page)}["bot"] == [f"http://{place}"]
        expect(result).to_have_attribute("data-outcome", "refused")  # it is tested at once
        expect(result).to_contain_text("invalid_auth")
        put(server, page, "bot", hosts=[f"http://{place}"], secret=TOKEN)
        expect(editor.at("test-connection")).to_have_text("Test again")
        editor.at("test-connection").click()
        expect(result).to_have_attribute("data-outcome", "ok")
        expect(result).to_contain_text("Signed in as grace, Looms")
        expect(result).to_contain_text(f"POST http://{place}/auth.test")
        expect(page.locator("body")).not_to_contain_text(TOKEN)


def test_a_generic_connection_says_what_it_has_to_call(servers: Servers, contexts: Contexts) -> None:
    with played() as place:
        server, _, page = begin(servers, contexts, place)
        put(server, page, "plain", hosts=[f"http://{place}"])
        http = {"type": "http", "name": "Call", "params": {"url": f"http://{place}/x", "connection": "plain"}}
        editor = open_block(server, page, http)
        editor.at("test-connection").click()
        result = page.locator("[data-inspector] .tested")
        expect(result).to_have_attribute("data-outcome", "nothing")
        expect(result).to_contain_text("There is nothing to call.")
        editor.at("connect-connection").click()
        dialog = page.get_by_role("dialog")
        expect(editor.at("connect-hosts")).to_have_value(f"http://{place}")
        editor.at("connect-check").fill(f"http://{place}/me")
        editor.at("connect-secret").fill("a wrong token")
        editor.at("connect-test").click()
        expect(dialog.locator(".tested")).to_contain_text("Refused (401)")
        editor.at("connect-secret").fill(TOKEN)
        expect(dialog.locator(".tested")).to_have_count(0)  # it was of another token
        editor.at("connect-test").click()
        expect(dialog.locator(".tested")).to_contain_text("The credential is accepted")
        editor.at("connect-name").fill("mine")
        editor.at("connect-send").click()
        expect(editor.at("field-connection")).to_have_value("mine")
        expect(result).to_have_attribute("data-outcome", "ok")  # what was just made is tested at once


def test_a_sign_in_begins_in_the_field_and_comes_back_to_it(servers: Servers, contexts: Contexts) -> None:
    with played() as place:
        server, watched, page = begin(servers, contexts, place)
        own = {"kind": "oauth2_code", "client_id": "weft", "secret": "the secret of the client"}
        there = {"authorize_url": f"http://{place}/authorize", "token_url": f"http://{place}/token"}
        put(server, page, "team", hosts=[f"http://{place}"], **own, **there)
        watched.allow(re.escape(place))  # the page of the provider
        editor = open_block(server, page, slack(place, connection="team"))
        expect(page.get_by_text("It needs a sign-in.")).to_be_visible()
        with page.expect_popup() as popup:
            editor.at("sign-in-connection").click()
        result = page.locator("[data-inspector] .tested")
        expect(result).to_contain_text("Signed in as grace, Looms")
        assert popup.value.is_closed() or popup.value.get_by_test_id("signed-in").is_visible()
        expect(editor.at("field-connection")).to_have_value("team")
        expect(page.get_by_text("It needs a sign-in.")).to_have_count(0)


def test_without_a_window_the_page_itself_comes_back_to_the_block(servers: Servers, contexts: Contexts) -> None:
    with played() as place:
        server, watched, page = begin(servers, contexts, place)
        own = {"kind": "oauth2_code", "client_id": "weft", "secret": "the secret of the client"}
        there = {"authorize_url": f"http://{place}/authorize", "token_url": f"http://{place}/token"}
        put(server, page, "team", hosts=[f"http://{place}"], **own, **there)
        watched.allow(re.escape(place))
        editor = open_block(server, page, slack(place, connection="team"))
        draft = page.url
        page.evaluate("window.open = () => null")  # as a browser does that blocks windows
        editor.at("sign-in-connection").click()
        page.wait_for_url(re.compile(re.escape(draft.partition("?")[0])))
        editor.is_ready("s")
        expect(editor.at("field-connection")).to_have_value("team")  # the block is chosen
        editor.at("test-connection").click()
        expect(page.locator("[data-inspector] .tested")).to_contain_text("Signed in as grace, Looms")


def test_the_dialog_offers_the_sign_in_of_the_service(servers: Servers, contexts: Contexts) -> None:
    server, watched, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    watched.allow("slack.com|status of 400")
    page.context.route("https://slack.com/**", lambda route: route.fulfill(body="<title>Slack</title>"))
    editor = open_block(server, page, slack())
    editor.at("connect-connection").click()
    dialog = page.get_by_role("dialog", name="Connect Slack")
    editor.at("connect-kind").select_option("oauth")
    expect(dialog).to_contain_text(f"{server.url}/settings")
    expect(editor.at("connect-scopes")).to_have_value(re.compile("chat:write.*users:read.email"))
    expect(editor.at("connect-secret")).to_have_attribute("type", "password")
    editor.at("connect-client").fill("1234")
    editor.at("connect-secret").fill("the secret of the client")
    with page.expect_popup() as popup:
        editor.at("connect-send").click()
    other = popup.value
    other.wait_for_url("https://slack.com/oauth/v2/authorize?**")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(other.url).query).items()}
    assert (asked["client_id"], asked["redirect_uri"]) == ("1234", f"{server.url}/settings")
    expect(dialog).to_contain_text("Sign in in the window of Slack.")
    expect(editor.at("field-connection")).to_have_value("slack")
    other.goto(f"{server.url}/settings?{urlencode({'state': asked['state'], 'error': 'access_denied'})}")
    expect(dialog.get_by_role("alert")).to_contain_text("access_denied")
    expect(editor.at("connect-send")).to_have_text("Sign in")


def test_settings_test_a_connection_step_by_step(servers: Servers, contexts: Contexts) -> None:
    with played() as place:
        server, _, page = begin(servers, contexts, place)
        check = f"http://{place}/me"
        put(server, page, "good", hosts=[f"http://{place}"], secret=TOKEN, check_url=check)
        put(server, page, "bad", hosts=[f"http://{place}"], check_url=check)
        put(server, page, "far", hosts=["api.example.com"], check_url=check)
        put(server, page, "none", hosts=["api.example.com"])
        page.goto("/settings?page=connections")
        for name, outcome, said, marks in (
            ("good", "ok", "The credential is accepted", ["ok", "ok", "ok"]),
            ("bad", "refused", "Refused (401)", ["ok", "ok", "err"]),
            ("far", "hosts", "Not one of its hosts", ["err", "quiet", "quiet"]),
        ):
            row = page.get_by_test_id(f"connection-{name}")
            row.get_by_test_id(f"test-{name}").click()
            steps = row.locator(".teststeps")
            expect(steps).to_have_attribute("data-outcome", outcome)
            assert [each.get_attribute("data-tone") for each in steps.locator("li").all()] == marks
            expect(page.get_by_test_id(f"connection-state-{name}")).to_have_text(said)
        row = page.get_by_test_id("connection-none")
        row.get_by_test_id("test-none").click()
        expect(page.get_by_test_id("connection-state-none")).to_have_text("Nothing to call")
        expect(row).to_contain_text("There is nothing to call")
        page.reload()
        for name, said in (("good", "ok"), ("bad", "refused (401)"), ("far", "not one of its hosts")):
            state = page.get_by_test_id(f"connection-state-{name}")
            expect(state).to_have_text(re.compile(rf"^Checked (just now|\d+ \w+ ago): {re.escape(said)}$"))
        expect(page.get_by_test_id("connection-state-none")).to_have_text("Never used")

        page.get_by_role("button", name="New connection").click()
        form = page.get_by_test_id("connection-form")
        form.get_by_test_id("connection-kind").select_option("bearer")
        form.get_by_test_id("connection-id").fill("new")
        expect(form.get_by_test_id("connection-secret")).to_have_attribute("type", "password")
        form.get_by_test_id("connection-secret").fill(TOKEN)
        form.get_by_test_id("connection-hosts").fill(f"http://{place}")
        form.get_by_test_id("connection-check_url").fill(check)
        form.get_by_test_id("connection-test").click()
        expect(form.locator(".tested")).to_contain_text("The credential is accepted")
        expect(page.locator("body")).not_to_contain_text(TOKEN)


def test_secrets_are_covered_where_they_are_typed(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    page.goto("/settings?page=secrets")
    page.get_by_role("button", name="New secret").click()
    form = page.get_by_test_id("secret-form")
    value = form.get_by_test_id("secret-value")
    expect(value).to_have_attribute("type", "password")
    value.focus()
    page.evaluate(PASTE, "-----BEGIN KEY-----\nabc\n-----END KEY-----\n")
    lines = form.locator("textarea[data-testid=secret-value]")
    expect(lines).to_have_value("-----BEGIN KEY-----\nabc\n-----END KEY-----\n")
    covered = "(each) => getComputedStyle(each).webkitTextSecurity"
    assert lines.evaluate(covered) == "disc"
    form.get_by_role("button", name="Show value").click()
    assert lines.evaluate(covered) == "none"

    # A credential that is typed into the document itself.
    editor = open_block(server, page, slack(credential="${BOT}"))
    box = page.locator(".ref__box:has([data-testid=field-credential])")
    expect(box).not_to_have_attribute("data-covered", "true")
    editor.at("field-credential").fill(TOKEN)
    expect(box).to_have_attribute("data-covered", "true")
    assert box.locator(".ref__paint").evaluate(covered) == "disc"
    expect(page.get_by_text("It would be stored in the workflow as it is typed.")).to_be_visible()
    box.get_by_role("button", name="Show Bot token").click()
    assert box.locator(".ref__paint").evaluate(covered) == "none"
    http = {"type": "http", "name": "Call", "params": {"url": "http://x.example", "headers": {**TABLES, "Accept": "a"}}}
    editor = open_block(server, page, http)
    expect(page.locator(".ref__box:has([data-testid='field-headers.0.value'])")).to_have_attribute(
        "data-covered", "true"
    )
    expect(page.locator(".ref__box:has([data-testid='field-headers.1.value'])")).not_to_have_attribute(
        "data-covered", "true"
    )


PASTE = """(text) => {
  const data = new DataTransfer()
  data.setData('text/plain', text)
  document.activeElement.dispatchEvent(
    new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
}"""


def test_a_curl_command_fills_in_a_request(editor: Editor) -> None:
    http = {"type": "http", "name": "Call", "at": [288, 0], "params": {"query": {"old": "1"}}}
    editor.open(document({"h": http}, [("start", "h")]))
    editor.select("h")
    url = editor.at("field-url")
    url.click()
    command = "curl -X POST 'https://api.example.com/v1' \\\n  -H 'Accept: text/plain' -d 'a=1'"
    editor.page.evaluate(PASTE, command)
    expect(url).to_have_value("https://api.example.com/v1")
    assert editor.doc()["blocks"]["h"]["params"] == {
        "url": "https://api.example.com/v1",
        "method": "POST",
        "headers": {"Accept": "text/plain", "Content-Type": "application/x-www-form-urlencoded"},
        "body": "a=1",
    }
    editor.press("Control+z")
    expect(url).to_have_value("")


def test_a_key_is_tested_with_what_the_block_reads(servers: Servers, contexts: Contexts) -> None:
    """The header and the address are filled in; a wrong key is named, and the right one is what the run sends."""
    with played() as place:
        server, _, page = begin(servers, contexts, place)
        open_block(server, page, {"type": "http", "params": {"url": f"http://{place}/orders"}})
        inspector = page.get_by_role("complementary", name="Inspector")
        inspector.get_by_role("button", name="New").click()
        dialog = page.get_by_role("dialog", name=f"Connect http://{place}")
        dialog.get_by_label("Kind").select_option("API key in a header")
        expect(dialog.get_by_label("Header")).to_have_value("X-Api-Key")
        expect(dialog.get_by_label("Address to check")).to_have_value(f"http://{place}/orders")
        key = dialog.get_by_role("textbox", name="Key", exact=True)
        key.fill("another key")
        dialog.get_by_role("button", name="Test").click()
        expect(dialog.get_by_role("status")).to_contain_text("Refused (401)")
        key.fill(TOKEN)
        dialog.get_by_role("button", name="Test").click()
        expect(dialog.get_by_role("status")).to_contain_text("The credential is accepted")
        dialog.get_by_role("button", name="Connect").click()
        expect(inspector.get_by_role("status")).to_contain_text("The credential is accepted")
        expect(inspector.get_by_role("button", name="New")).to_be_focused()
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="Succeeded")).to_be_visible()
