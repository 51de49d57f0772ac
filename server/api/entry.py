"""Signing in and out, by the token or by a provider of OpenID Connect, and the pages of the editor."""

from __future__ import annotations

import asyncio
from importlib import import_module

from starlette.responses import RedirectResponse, Response

from executor.errors import Conflict, NotFound
from executor.kernel.process.acting import Act, acting
from server import ui
from server.api.server import LoginRequest, SessionsEnded, SignedIn, SignInLink
from server.http.auth import CODE_S, ELSEWHERE, ID_TOKEN
from server.http.errors import BodyInvalid, Unauthorized
from server.http.principal import Principal
from server.http.response import Json
from server.http.table import Call, Routes, RouteSpec
from server.oidc.people import NotAdmitted, admit
from server.oidc.provider import ProviderError, SignIn, UnderWay
from server.pages import entry

LOGIN_BYTES_MAX = 4 * 1024
PROVIDER_S = 3.0  # signing out waits no longer for the provider's description

route = Routes("pages", RouteSpec)


@route.page("GET", "/sign-in", "Sign in")
async def page(call: Call) -> Response:
    """The page of a sign-in link. The code in the link stays in the browser until its script sends it."""
    return entry.sign_in(200, call.provider)


@route.page("POST", "/login", "Sign in with the server's token", body_bytes=LOGIN_BYTES_MAX, signs=True)
async def log_in(call: Call, body: LoginRequest) -> Response:
    """Start a session; the previous session of the browser ends. 401: the token or code is not valid. 429: too many
    wrong tokens."""
    if (body.token is None) == (body.code is None):
        raise BodyInvalid("Send either `token` or `code`.", pointer="")
    response = Json(SignedIn(True))
    before = await call.auth.session(call.request)
    try:
        await call.auth.sign_in(call.engine, body.token, body.code, response, call.device)
    except Unauthorized:
        how = "server-token" if body.code is None else "sign-in link"
        await call.auth.record_refusal(call.engine, "POST /login", how, call.address)
        if body.token is not None:
            call.rates.login_missed(call.address)
        raise
    call.auth.delete_cookie(response, ID_TOKEN)  # of the session before this one, which the provider had signed in
    if before is not None:
        await _end(call, before)
    return response


@route.page("POST", "/logout", "Sign out", signs=True)
async def log_out(call: Call) -> Response:
    """End the session of this browser, here and on the server. `at_provider`: where the browser goes to sign out at the
    provider that signed it in."""
    session = await call.auth.session(call.request)
    leave = None
    if session is not None:
        await _end(call, session)
        leave = await _at_provider(call)
    response = Json(SignedIn(False, leave))
    call.auth.sign_out(response)
    return response


async def _at_provider(call: Call) -> str | None:
    """Return the provider's sign-out page, or None if the session is not the provider's, the provider has no such page,
    or it does not answer in time."""
    id_token = call.auth.kept_id_token(call.request)
    if call.oidc is None or id_token is None:
        return None
    try:
        async with asyncio.timeout(PROVIDER_S):
            return call.oidc.flow.end(await call.oidc.provider.describe(), id_token)
    except (ProviderError, TimeoutError):
        return None


@route("DELETE", "/api/sessions", "Sign out all browsers", tag="server", needs="admin", answer=SessionsEnded)
async def end_all(call: Call) -> Response:
    """Sign out every browser, including this one. Programs that send the token are not affected."""
    ended = await call.engine.store.delete_sessions()
    call.streams.close_sessions()
    response = Json(SessionsEnded(ended))
    call.auth.sign_out(response)
    return response


@route(
    "POST",
    "/api/sign-in-links",
    "Create a sign-in link",
    tag="server",
    needs="admin",
    status=201,
    statuses=(409,),
    signs=True,
)
async def make_link(call: Call) -> SignInLink:
    """Create a link that signs in one browser as you, once, within ten minutes. 409: this server has no token."""
    if not call.auth.required:
        raise Conflict("This server requires no token, so no sign-in is needed.", code="no_token")
    return SignInLink(await call.auth.link(call.engine, call.who.user), CODE_S)


async def _end(call: Call, who: Principal) -> None:
    """The session of a browser that leaves, or that signs in anew."""
    assert who.key is not None, "it has a session"
    path = call.request.url.path
    with acting(Act(who.actor, who.via, f"POST {path}", path, call.engine.parts.clock.now_ms(), "the session ended")):
        await call.engine.store.delete_session(who.key)
    call.streams.close_session(who.key)


@route.page("GET", "/", "Front page")
@route.page("GET", "/runs/{id}", "A run, live")
@route.page("GET", "/w/{id}", "The editor of a workflow")
@route.page("GET", "/loom/{id}", "All runs of a workflow")
@route.page("GET", "/runs", "Runs")
@route.page("GET", "/approvals", "Open requests to people")
@route.page("GET", "/knowledge", "Collections of documents")
@route.page("GET", "/knowledge/{id}", "A collection of documents")
@route.page("GET", "/usage", "Tokens and costs")
@route.page("GET", "/settings", "Settings")
async def editor(call: Call) -> Response:
    if not await call.auth.allows(call.request):
        return entry.sign_in(provider=call.provider)
    return ui.page(call.interface) if call.interface else entry.not_built()


ACTION, PATH = "GET /oidc/callback", "/oidc/callback"

NOT_BEGUN = "This sign-in was not begun in this browser, or more than 10 minutes ago."


@route.page("GET", "/oidc/start", "Sign in by the provider")
async def start(call: Call) -> Response:
    """Redirect to the page of the provider. 404: there is none; 502: it does not answer."""
    oidc = _configured(call)
    try:
        described = await oidc.provider.describe()
    except ProviderError as error:
        return entry.not_signed_in(f"You cannot sign in now: {error}.", 502)
    to, now_s = call.request.query_params.get("to", "/"), call.engine.parts.clock.now_ms() / 1000
    url, cookie = oidc.flow.begin(described, to, now_s)
    response = RedirectResponse(url, 303, headers={"cache-control": "no-store"})
    call.auth.set_cookie(response, ELSEWHERE, cookie)
    return response


@route.page("GET", PATH, "Back from the provider")
async def callback(call: Call) -> Response:
    """Back from the provider. 400: not begun in this browser; 403: refused; 502: the provider does not answer."""
    oidc = _configured(call)
    sent = call.request.query_params
    now_s = call.engine.parts.clock.now_ms() / 1000
    under_way = oidc.flow.resume(call.auth.cookie_of(call.request, ELSEWHERE) or "", sent.get("state", ""), now_s)
    if under_way is None:
        return entry.not_signed_in(NOT_BEGUN, 400)
    call.rates.sign_in_returned(under_way.state)
    try:
        response = await _signed_in(call, oidc, under_way)
    except ProviderError as error:
        response = entry.not_signed_in(f"You cannot sign in now: {error}.", 502)
    except NotAdmitted as refused:
        await call.auth.record_refusal(call.engine, ACTION, f"oidc, {refused}", call.address)
        response = entry.not_signed_in(str(refused), 403)
    call.auth.delete_cookie(response, ELSEWHERE)
    return response


async def _signed_in(call: Call, oidc: SignIn, under_way: UnderWay) -> Response:
    id_token = await asyncio.to_thread(import_module, "server.oidc.id_token")  # loads joserfc with the first sign-in
    sent, mine, engine = call.request.query_params, oidc.settings, call.engine
    if sent.get("iss", mine.issuer) != mine.issuer:
        raise NotAdmitted("The answer is of another provider.")
    if "code" not in sent:
        raise NotAdmitted(f"The provider refused: {sent.get('error', 'it sent no code')[:100]}.")
    token = await oidc.provider.redeem(sent["code"], under_way.verifier, oidc.flow.redirect_uri)
    now_ms = engine.parts.clock.now_ms()
    try:
        claims = await oidc.provider.verify(token, under_way.nonce, now_ms / 1000)
    except id_token.TokenRefused as refused:
        raise NotAdmitted(f"The ID token of the provider does not count: {refused}.") from None
    with acting(Act("oidc", "oidc", ACTION, PATH, now_ms, str(claims["sub"]))):
        user = await admit(engine.store, mine, claims, now_ms)
    response = entry.signed_in(under_way.to)
    with acting(Act(f"user:{user.id}", "oidc", ACTION, PATH, now_ms)):
        await call.auth.begin(engine, user.id, response, call.device)
    call.auth.keep_id_token(response, token)
    return response


def _configured(call: Call) -> SignIn:
    if call.oidc is None:
        raise NotFound("This server has no provider that signs people in.", code="not_found")
    return call.oidc
