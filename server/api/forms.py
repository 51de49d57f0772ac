"""Public forms: GET shows one and changes nothing, POST starts a run. The token in the address is the credential."""

from __future__ import annotations

from starlette.responses import Response

from executor.errors import Conflict, InputInvalid, WeftError
from executor.service.triggers.forms import FormView
from server.api.runs import wait_for
from server.http.errors import UnsupportedMedia
from server.http.multipart import FORM_MEDIAS, posted
from server.http.table import Call, Routes, RouteSpec
from server.pages import forms as pages
from server.pages.forms import file_inputs, placed_errors, read_form
from server.pages.html import instead

BODY_BYTES_MAX = 256 * 1024
_ONE = "/forms/{name}/{token}"
_HTML = ("text/html",)

route = Routes("triggers", RouteSpec)


@route.page("GET", _ONE, "A public form", media=_HTML)
async def show(call: Call, name: str, token: str) -> Response:
    try:
        form = await call.follow_link(call.engine.forms.find(name, token))
    except WeftError as error:
        return instead(error, "form")
    return pages.ask(form, extras=call.extras, read_only=call.settings.read_only)


@route.page("POST", _ONE, "Submit a public form", body_bytes=BODY_BYTES_MAX, media=_HTML)
async def submit(call: Call, name: str, token: str) -> Response:
    """The page with the result. Sending the same page again starts nothing and shows the same run."""
    if call.media_type not in FORM_MEDIAS:
        raise UnsupportedMedia("This address accepts only the form of its page.", hint="Programs use a webhook.")
    try:
        form = await call.follow_link(call.engine.forms.find(name, token))
        call.rates.link_answered(f"{form.id}\0{call.address}")
        call.rates.hook_proved(form.id, "token", call.address)
        return await _submit(call, name, token, form)
    except WeftError as error:
        return instead(error, "form")


async def _submit(call: Call, name: str, token: str, form: FormView) -> Response:
    typed, extras = await posted(call, file_inputs(form.schema), token), call.extras
    fields, errors = read_form(form.schema, typed)
    if errors:
        return pages.ask(form, typed=typed, errors=errors, extras=extras)
    try:
        delivered = await call.engine.forms.submit(name, token, fields, typed.get(pages.ONCE, ""))
    except InputInvalid as error:
        at_field, on_top = placed_errors(form.schema, error)
        return pages.ask(form, typed=typed, errors=at_field, error=on_top, extras=extras)
    except Conflict as error:
        if "run" not in error.extra:
            raise
        return pages.submitted(form, await call.engine.runs.view(error.extra["run"]), extras)
    run = await wait_for(call, delivered.submitted.run, delivered.timeout_s or 0)
    return pages.submitted(form, run, extras)
