"""The pages before the editor: signing in, and what to do where the editor was not built."""

from __future__ import annotations

from starlette.responses import Response

from server.pages.html import markup, page

_PROVIDER = """<div class="actions">
<a href="/oidc/start" id="provider" class="button primary">Sign in with {}</a></div>"""
_SIGN_IN = """<h1>Sign in</h1>{}
<p>Paste the token from <code>weft token</code>, or open the link that <code>weft serve</code> printed. For a new link,
run <code>weft link</code>.</p>
<form id="sign-in" method="post" action="/login">
<div class="field"><label for="token">Token</label>
<input type="password" name="token" id="token" required autocomplete="current-password"></div>
<p class="notice err" role="alert" hidden></p>
<div class="actions"><button type="submit" class="primary">Sign in</button></div>
</form>
<noscript><p class="quiet">Signing in requires JavaScript. Programs send the header Authorization: Bearer.</p>
</noscript>"""
_NOT_SIGNED_IN = """<h1>Not signed in</h1><p>{}</p><p><a href="/sign-in">Sign in again</a></p>"""
_SIGNED_IN = """<h1>Signed in</h1><p><a href="{}">Continue</a></p>"""
_NOT_BUILT = """<h1>The editor is not built</h1>
<p>This server was installed with <code>WEFT_WEB=skip</code>, or from sources whose editor was never built. Workflows
run, and the HTTP API, the command line, webhooks and links to approvals work.</p>
<p>To build the editor, stop the server and run <code>make serve</code> without <code>WEFT_WEB</code>, or install the
package again with <code>pip install .</code>. The build downloads from an npm registry, and uses Node of this machine
or one from PyPI.</p>"""


def sign_in(status: int = 401, provider: str | None = None) -> Response:
    """The page that asks for the token. 401 in place of another page, 200 at its own address. `provider` is the name of
    a sign-in provider."""
    button = None if provider is None else markup(_PROVIDER, provider)
    return page("Sign in", markup(_SIGN_IN, button), status=status, script="/static/sign_in.js")


def not_signed_in(why: str, status: int) -> Response:
    """Back from a provider without success."""
    return page("Not signed in", markup(_NOT_SIGNED_IN, why), status=status)


def signed_in(to: str) -> Response:
    """Back from a provider. The next page is asked for from here, because the browser sends the cookie of the session,
    which is strict, with no request that another site's page led to."""
    response = page("Signed in", markup(_SIGNED_IN, to))
    response.headers["refresh"] = f"0; url={to}"
    return response


def not_built() -> Response:
    """The page of a server without the editor, which still works; it shows how to get the editor."""
    return page("The editor is not built", markup(_NOT_BUILT))
