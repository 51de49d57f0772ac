"""Bug 18: a page whose scripts are still on their way is not blank."""

from __future__ import annotations

from playwright.sync_api import Route, expect

from tests.browser.editor import Editor


def test_b18_the_frame_of_the_page_is_there_before_its_scripts(editor: Editor) -> None:
    held: list[Route] | None = []

    def hold(route: Route) -> None:
        if held is None:
            route.continue_()
        else:
            held.append(route)

    page = editor.page
    page.route("**/assets/*.js", hold)
    page.goto("/", wait_until="commit")
    frame = page.get_by_role("status", name="Loading")
    expect(frame).to_be_visible()
    expect(frame.get_by_text("weft")).to_be_visible()
    expect(frame.locator("i").nth(1)).to_have_css("border-top-style", "solid")  # its style sheet is there as well
    assert held
    waiting, held = held, None
    for route in waiting:
        route.continue_()
    expect(page.get_by_role("heading", name="Workflows")).to_be_visible()
    expect(frame).to_have_count(0)
