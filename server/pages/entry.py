"""The pages before the editor: signing in, and what to do where the editor was not built."""

from __future__ import annotations

from starlette.responses import Response

from server.pages.html import el, page


def sign_in(status: int = 401) -> Response:
    """The page that asks for the token. 401 in place of another page, 200 at its own address."""
    return page(
        "Sign in",
        el("h1", "Sign in"),
        el(
            "p",
            "Paste the token from ",
            el("code", "weft token"),
            ", or open the link that ",
            el("code", "weft serve"),
            " printed. For a new link, run ",
            el("code", "weft link"),
            ".",
        ),
        el(
            "form",
            el(
                "div",
                el("label", "Token", for_="token"),
                el("input", type="password", name="token", id="token", required=True, autocomplete="current-password"),
                class_="field",
            ),
            el("p", "", class_="notice err", role="alert", hidden=True),
            el("div", el("button", "Sign in", type="submit", class_="primary"), class_="actions"),
            id="sign-in",
            method="post",
            action="/login",
        ),
        el(
            "noscript",
            el("p", "Signing in requires JavaScript. Programs send the header Authorization: Bearer.", class_="quiet"),
        ),
        status=status,
        script="/static/sign_in.js",
    )


def not_built() -> Response:
    """The server works without the editor; this says how to get it."""
    return page(
        "The editor is not built",
        el("h1", "The editor is not built"),
        el(
            "p",
            "This server was installed with ",
            el("code", "WEFT_WEB=skip"),
            ", or from sources whose editor was never built. Workflows run, and the HTTP API, the command line, "
            "webhooks and links to approvals work.",
        ),
        el(
            "p",
            "To build the editor, stop the server and run ",
            el("code", "make serve"),
            " without ",
            el("code", "WEFT_WEB"),
            ", or install the package again with ",
            el("code", "pip install ."),
            ". The build downloads from an npm registry, and uses Node of this machine or one from PyPI.",
        ),
    )
