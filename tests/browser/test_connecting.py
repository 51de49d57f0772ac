"""A connection is made where it is needed: only what the service asks for, masked, and only for its hosts."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Editor, document
from tests.browser.test_sign_in import sign_in, start


def test_a_connection_is_made_in_the_field_of_a_block(servers: Servers, contexts: Contexts) -> None:
    server, _, page, _ = start(servers, contexts)
    sign_in(page, server.sign_in_link())
    for name, host in (("local", "127.0.0.1"), ("chat", "slack.com")):
        stored = page.request.put(
            f"{server.url}/api/connections/{name}",
            data={"kind": "bearer", "secret": "another token", "hosts": [host]},
            headers={"origin": server.url},
        )
        assert stored.ok, stored.text()
    editor = Editor(page, server.url)
    slack = {"type": "connector.slack", "name": "Tell", "at": [288, 0], "params": {"channel": "C1", "text": "Hi"}}
    made = page.request.post(
        f"{server.url}/api/drafts",
        data={"name": "tell", "document": document({"s": slack}, [("start", "s")])},
        headers={"origin": server.url},
    ).json()
    page.goto(f"/w/{made['id']}")
    editor.is_ready("s")
    editor.select("s")
    field = editor.at("field-connection")
    expect(field.locator("option")).to_have_text(["None", "chat"])
    expect(page.get_by_text("1 other is not for slack.com.")).to_be_visible()
    editor.at("connect-connection").click()
    dialog = page.get_by_role("dialog", name="Connect Slack")
    expect(dialog.get_by_role("textbox")).to_have_count(2)  # a token, and a name
    secret = editor.at("connect-secret")
    expect(secret).to_have_attribute("type", "password")
    secret.fill("xoxb-of-the-test")
    expect(dialog).to_contain_text("There is no test for it")
    expect(editor.at("connect-name")).to_have_value("slack")
    editor.at("connect-send").click()
    expect(dialog).to_have_count(0)
    expect(field).to_have_value("slack")
    expect(page.get_by_text("Sent only to slack.com")).to_be_visible()
    expect(page.locator("body")).not_to_contain_text("xoxb-of-the-test")
    editor.is_saved()
    stored = page.request.get(f"{server.url}/api/connections").json()["connections"]
    assert {each["name"]: (each["kind"], each["hosts"]) for each in stored}["slack"] == ("bearer", ["slack.com"])


def test_a_curl_command_fills_in_a_request(editor: Editor) -> None:
    http = {"type": "http", "name": "Call", "at": [288, 0], "params": {"query": {"old": "1"}}}
    editor.open(document({"h": http}, [("start", "h")]))
    editor.select("h")
    url = editor.at("field-url")
    url.click()
    command = "curl -X POST 'https://api.example.com/v1' \\\n  -H 'Accept: text/plain' -d 'a=1'"
    editor.page.evaluate(
        """(text) => {
          const data = new DataTransfer()
          data.setData('text/plain', text)
          document.activeElement.dispatchEvent(
            new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }))
        }""",
        command,
    )
    expect(url).to_have_value("https://api.example.com/v1")
    assert editor.doc()["blocks"]["h"]["params"] == {
        "url": "https://api.example.com/v1",
        "method": "POST",
        "headers": {"Accept": "text/plain", "Content-Type": "application/x-www-form-urlencoded"},
        "body": "a=1",
    }
    editor.press("Control+z")
    expect(url).to_have_value("")
