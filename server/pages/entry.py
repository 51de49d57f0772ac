"""The pages before the editor: signing in, and what to do where the editor was not built."""

from __future__ import annotations

from starlette.responses import Response

from server.pages.html import el, page


def sign_in(status: int = 401, provider: str | None = None) -> Response:
    """The page that asks for the token. 401 in place of another page, 200 at its own address. `provider` is the name of
    a sign-in provider."""
    return page(
        "Sign in",
        el("h1", "Sign in"),
        None
        if provider is None
        else el(
            "div",
            el("a", f"Sign in with {provider}", href="/oidc/start", id="provider", class_="button primary"),
            class_="actions",
        ),
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


def not_signed_in(why: str, status: int) -> Response:
    """Back from a provider without success."""
    return page(
        "Not signed in",
        el("h1", "Not signed in"),
        el("p", why),
        el("p", el("a", "Sign in again", href="/sign-in")),
        status=status,
    )


def signed_in(to: str) -> Response:
    """Back from a provider. The next page is asked for from here, because the browser sends the cookie of the session,
    which is strict, with no request that another site's page led to."""
    response = page("Signed in", el("h1", "Signed in"), el("p", el("a", "Continue", href=to)))
    response.headers["refresh"] = f"0; url={to}"
    return response


def not_built() -> Response:
    """The page of a server without the editor, which still works; it shows how to get the editor."""
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
