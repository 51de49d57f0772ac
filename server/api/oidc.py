"""Signing in by a provider of OpenID Connect: away to its page, and back with a code."""

from __future__ import annotations

import asyncio
from importlib import import_module

from starlette.responses import RedirectResponse, Response

from executor.errors import NotFound
from executor.kernel.store.topics.audit import Act, acting
from server.http.call import Call
from server.http.table import Routes, RouteSpec
from server.oidc.flow import UnderWay
from server.oidc.people import NotAdmitted, admit
from server.oidc.provider import ProviderError
from server.oidc.sign_in import SignIn
from server.pages import entry

ACTION, PATH = "GET /oidc/callback", "/oidc/callback"


NOT_BEGUN = "This sign-in was not begun in this browser, or more than 10 minutes ago."


route = Routes("pages", RouteSpec)


@route("GET", "/oidc/start", "Sign in by the provider", public=True, documented=False)
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
    call.auth.begin_elsewhere(response, cookie)
    return response


@route("GET", PATH, "Back from the provider", public=True, documented=False)
async def callback(call: Call) -> Response:
    """Back from the provider. 400: not begun in this browser; 403: refused; 502: the provider does not answer."""
    oidc = _configured(call)
    sent = call.request.query_params
    now_s = call.engine.parts.clock.now_ms() / 1000
    under_way = oidc.flow.resume(call.auth.begun_elsewhere(call.request), sent.get("state", ""), now_s)
    if under_way is None:
        return entry.not_signed_in(NOT_BEGUN, 400)
    call.auth.returns.returned(under_way.state)
    try:
        response = await _signed_in(call, oidc, under_way)
    except ProviderError as error:
        response = entry.not_signed_in(f"You cannot sign in now: {error}.", 502)
    except NotAdmitted as refused:
        await call.auth.note_refusal(call.engine, ACTION, f"oidc, {refused}", call.address)
        response = entry.not_signed_in(str(refused), 403)
    call.auth.end_elsewhere(response)
    return response


async def _signed_in(call: Call, oidc: SignIn, under_way: UnderWay) -> Response:
    """Raises ProviderError, NotAdmitted."""
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
