"""Tasks of a new user with workflows that run, by what is visible alone: rewind, keep a test, compare, publish safely,
find a failed run among many, connect a service. Every place is reached from the front page by clicks."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Contexts, Servers
from tests.browser.editor import Api, box_of, document

MORE = 12  # runs of each of the three workflows among which one is looked for
Visit = Callable[..., Page]


@pytest.fixture
def visit(servers: Servers, contexts: Contexts) -> Visit:
    """The front page of a server of the test's own."""
    server = servers()

    def at(prepare: Callable[[Api], None] | None = None, path: str = "/") -> Page:
        if prepare:
            prepare(Api(server.url))
        page = contexts(server.url).page()
        page.goto(path)
        return page

    return at


def example(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Open a copy of {name}").click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("application").get_by_role("group", name=re.compile(f"^{re.escape(name)}, "))


def choose(page: Page, menu: str, entry: str) -> None:
    """Choose an entry of the menu whose button begins with these words."""
    page.get_by_role("button", name=re.compile(f"^{menu}")).first.click()
    page.get_by_role("menuitem", name=entry).click()


def notice(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible()


def expense(page: Page, amount: str) -> None:
    """Run the example of expenses with this amount."""
    button(page, "Run").click()
    dialog = page.get_by_role("dialog", name="Run expense-approval")
    dialog.get_by_label("Amount in EUR").fill(amount)
    dialog.get_by_role("button", name="Run").click()


def limit(page: Page, amount: str) -> None:
    """Up to this amount a manager is not asked."""
    card(page, "How much?").get_by_text("How much?").click()
    page.get_by_label("Compared value of Expression of up to 100").fill(amount)
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()


def test_keep_a_test(visit: Visit) -> None:
    page = visit()
    example(page, "Expense approval")
    expense(page, "420")
    answer = button(page, "Answer")
    button(page, "Copy link").click()
    expect(button(page, "Dismiss")).to_be_visible()  # what it belongs to lies below the question
    assert box_of(button(page, "Dismiss"))["y"] > box_of(answer)["y"] + box_of(answer)["height"]
    answer.click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    notice(page, "Succeeded")
    expect(page.get_by_role("region", name="Canvas")).to_be_focused()
    choose(page, "More", "Keep this run as test")
    expect(page.get_by_role("button", name="1 of 1 same")).to_have_count(5)
    limit(page, "500")
    other = button(page, "1 other branch")
    expect(other).to_be_visible()
    expect(button(page, "approve → automatic")).to_be_visible()
    other.click()
    tests = page.get_by_role("dialog", name="Tests of expense-approval")
    expect(tests.get_by_role("listitem")).to_contain_text("Manager › Notify: paid")
    tests.get_by_role("button", name="Close").click()
    limit(page, "100")
    expect(page.get_by_role("button", name="1 of 1 same")).to_have_count(5)


def test_compare_runs_versions_and_attempts(visit: Visit) -> None:
    page = visit()
    example(page, "Expense approval")
    for amount in ("90", "80"):
        expense(page, amount)
        expect(page.get_by_role("application")).to_contain_text(f"amount{amount}")
        expect(page.get_by_role("status").filter(has_text="Succeeded")).to_be_visible()
    button(page, "Publish").click()
    page.get_by_role("dialog").get_by_role("button", name="Publish").click()
    limit(page, "50")
    choose(page, "Draft", "Compare versions")
    versions = page.get_by_role("dialog", name="Compare versions")
    expect(versions).to_contain_text("Cases 1, when")
    expect(versions.get_by_role("deletion")).to_have_text("<start.amount> <= 100")
    expect(versions.get_by_role("insertion")).to_have_text("<start.amount> <= 50")
    versions.get_by_role("button", name="Close").click()

    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("row", name=re.compile("^Choose .* Succeeded"))).to_have_count(2)
    page.get_by_role("checkbox", name="Choose all").check()
    assert box_of(page.get_by_role("toolbar", name="Chosen runs"))["height"] < 60  # in one row
    button(page, "Compare").click()
    expect(page.get_by_text("Two futures")).to_be_visible()
    first = page.get_by_role("group", name="First difference")
    expect(first).to_contain_text("Start.amount")
    expect(first).to_contain_text("90")
    expect(first).to_contain_text("80")

    page.goto("/")
    example(page, "Error handling")
    button(page, "Run").click()
    expect(page.get_by_role("status").filter(has_text="Succeeded")).to_be_visible()
    card(page, "Fails twice").dblclick()
    sheet = page.get_by_role("dialog", name="Fails twice")
    expect(sheet.get_by_label("Compared with")).to_have_value(re.compile("2"))
    expect(sheet).to_contain_text("503")


def test_publish_safely(visit: Visit) -> None:
    page = visit()
    example(page, "Expense approval")
    button(page, "Publish").click()
    dialog = page.get_by_role("dialog", name="Publish expense-approval")
    expect(dialog.get_by_role("region", name="Starts")).to_contain_text("by hand, by API and from other workflows")
    dialog.get_by_role("button", name="Publish").click()
    notice(page, "Published version 1 of expense-approval.")

    page.get_by_role("link", name="weft").click()  # a second draft, with the same name
    example(page, "Expense approval")
    limit(page, "500")
    button(page, "Publish").click()
    expect(dialog).to_contain_text("This draft was not made from it; to keep it live, choose another name.")
    publish = dialog.get_by_role("button", name="Publish version 2")
    expect(publish).to_have_attribute("aria-disabled", "true")
    dialog.get_by_role("checkbox", name="Version 1 is replaced.").check()
    publish.click()
    notice(page, "Published version 2 of expense-approval.")
    expect(button(page, "Draft · v2")).to_be_visible()

    choose(page, "Draft", "Put version 1 into the draft")
    notice(page, "The draft is version 1 again. Version 2 stays live until you publish.")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    button(page, "Publish").click()
    dialog.get_by_role("button", name="Publish version 1 again").click()
    notice(page, "Version 1 of expense-approval is live again instead of version 2.")


def many(api: Api) -> None:
    for name in ("orders", "invoices", "newsletter"):
        code = "if (<start.n> === 4) throw new Error('no stock for ' + <start.sku>)" if name == "orders" else "return 1"
        work = {"type": "function", "name": "Reserve stock", "at": [288, 0], "params": {"code": code}}
        api.post("/api/workflows", {"document": document({"work": work}, [("start", "work")], name=name), "name": name})
        for n in range(MORE):
            api.post(f"/api/workflows/{name}/runs?wait=20", {"input": {"n": n, "sku": f"SKU-40{n:02}"}})


def test_find_a_failed_run_among_many(visit: Visit) -> None:
    page = visit(many)
    page.get_by_role("link", name=re.compile(f"^The last {MORE} runs: 1 failed")).click()
    rows = page.get_by_role("row", name=re.compile("no stock for SKU-4004"))
    expect(rows).to_have_count(1)

    button(page, "Clear the filter").click()
    filter = page.get_by_role("combobox", name="Filter runs")
    filter.fill("SKU-4004")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option")).to_have_count(0)
    expect(rows).to_have_count(1)
    page.keyboard.press("Backspace")
    filter.fill("SKU-4007")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No runs match")).to_be_visible()  # nothing of 10,000 runs where there are 36
    expect(page.get_by_text("in the id, the key and the error of a run, not in its input")).to_be_visible()
    page.keyboard.press("Backspace")
    filter.fill("SKU-4004")
    page.keyboard.press("Enter")
    rows.get_by_role("link").click()
    notice(page, "Reserve stock failed")

    page.get_by_role("link", name="weft").click()
    page.get_by_role("button", name="orders", exact=True).or_(
        page.get_by_role("link", name="orders", exact=True)
    ).click()
    page.get_by_role("link", name="Loom").click()
    page.get_by_role("button", name=re.compile("^Reserve stock, .* 1 failed")).click()
    listed = page.get_by_role("region", name="1 run failed at Reserve stock")
    expect(listed.get_by_role("listitem")).to_contain_text("SKU-4004")
    listed.get_by_role("link", name="Open as list").click()
    expect(rows).to_have_count(1)
    page.get_by_role("checkbox", name="Choose all").check()
    bar = page.get_by_role("toolbar", name="Chosen runs")
    expect(bar).to_contain_text("1 of 1 chosen")
    bar.get_by_role("button", name="Run again").click()


def test_a_failed_run_is_found_on_a_phone(servers: Servers, contexts: Contexts) -> None:
    server = servers()
    many(Api(server.url))
    page = contexts(server.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).page()
    page.goto("/")
    page.get_by_role("link", name=re.compile(f"^The last {MORE} runs: 1 failed")).tap()
    error = page.get_by_text("no stock for SKU-4004")
    assert box_of(error)["x"] + box_of(error)["width"] < 390
    assert error.evaluate("e => e.parentElement.scrollHeight <= e.parentElement.clientHeight")  # all of it is read
    page.get_by_role("checkbox").first.tap()
    bar = page.get_by_role("toolbar", name="Chosen runs")
    close = box_of(bar.get_by_role("button", name="Choose none"))
    assert close["y"] < box_of(bar.get_by_role("button", name="Run again"))["y"]
    bar.get_by_role("button", name="Run again").tap()
    dialog = page.get_by_role("dialog", name="Run again")
    choices = [box_of(each) for each in dialog.get_by_role("radio").all()]
    assert choices[1]["y"] + choices[1]["height"] < box_of(dialog.get_by_test_id("repeated"))["y"]
    dialog.get_by_role("button", name="Run 1 again").tap()
    expect(page.get_by_role("row", name=re.compile("no stock for SKU-4004"))).to_have_count(2)


def test_connect_a_service(visit: Visit) -> None:
    page = visit()
    button(page, "New workflow").click()
    button(page, "Add a block").click()
    picker = page.get_by_test_id("block-picker")
    picker.get_by_role("combobox").fill("HTTP request")
    page.keyboard.press("Enter")
    inspector = page.get_by_role("complementary", name="Inspector")
    inspector.get_by_label("URL").fill("${WEFT_BASE_URL}/demo/echo")
    inspector.get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Connect"))
    dialog.get_by_label("Kind").select_option("API key in a header")
    connect = dialog.get_by_role("button", name=re.compile("^Connect"))
    expect(connect).to_have_attribute("title", "Enter the secret")
    expect(dialog.get_by_label("Header")).to_have_value("X-Api-Key")
    key = dialog.get_by_role("textbox", name="Key", exact=True)
    key.fill("key-of-the-test")
    place = page.url.rpartition("/w/")[0]
    dialog.get_by_label("Host").fill(place)
    dialog.get_by_label("Address to check").fill(f"{place}/demo/echo")
    dialog.get_by_label("Name").fill("shop")
    before = box_of(key)["y"]
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_be_visible()
    expect(button(page, "Test again")).to_be_visible()
    assert box_of(key)["y"] == before  # what is typed stands still
    connect.click()
    expect(inspector.get_by_label("Connection")).to_have_value("shop")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    button(page, "Run").click()
    expect(page.get_by_role("status").filter(has_text="Succeeded")).to_be_visible()
