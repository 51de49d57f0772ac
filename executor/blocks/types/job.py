"""`job`: starts work somewhere else and waits, without memory, until it calls back.

A job is started after the wait is on disk, and at least once, so the system that starts it must recognise a repeat by
its name. `http` posts a description of the job; `kubernetes` creates a Job, polls it, and deletes it when it is not
needed.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from compiler.catalog import Finding, Params
from executor.blocks.services import services_of
from executor.blocks.types.callback import BODY_SCHEMA, CALLED, OWN_HEADERS, until_called
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import (
    SENT_HEADERS,
    Expiring,
    as_text,
    changed,
    invalid,
    param,
    web_address,
)
from executor.blocks.types.response import header_texts
from executor.kernel.handler.base import StepContext, Suspend

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_HTTP: Final = {"adapter": ["http"]}
_KUBERNETES: Final = {"adapter": ["kubernetes"]}
_TEXTS: Final = {"type": ["string", "number", "boolean"]}


def _check(params: Params) -> tuple[Finding, ...]:
    needed, title = ("image", "Image") if params.get("adapter") == "kubernetes" else ("url", "URL")
    if params.get(needed) in (None, ""):
        return (Finding("required", f"/{needed}", f"{title} is required."),)
    return ()


class _Params(Expiring, shift=4):
    adapter: str = param(
        "Start by",
        "How the work is started.",
        default="http",
        weft="literal",
        choices={"http": "An HTTP request", "kubernetes": "A Kubernetes Job"},
    )
    url: str | None = param(
        "URL", "Receives a POST with the job and callback_url.", weft="secret", when=_HTTP, url=True
    )
    headers: Any = changed(SENT_HEADERS, when=_HTTP)
    job: Any = param(
        "Job",
        "Describes the job. callback_url is added to an object.",
        rows=6,
        weft="secret",
        when=_HTTP,
    )
    image: str | None = param(
        "Image", "Container image. It finds the URL to call in WEFT_CALLBACK_URL.", when=_KUBERNETES
    )
    command: list[Any] | None = param(
        "Command",
        "Leave empty for that of the image.",
        widget="json",
        rows=2,
        when=_KUBERNETES,
        items=_TEXTS,
    )
    args: list[Any] | None = param(
        "Arguments",
        "A list of texts.",
        widget="json",
        rows=2,
        when=_KUBERNETES,
        items=_TEXTS,
    )
    env: dict[str, Any] | None = param(
        "Environment",
        "More variables, such as settings of the job.",
        when=_KUBERNETES,
        additionalProperties=_TEXTS,
    )
    resources: dict[str, Any] | None = param(
        "Resources",
        'Requests and limits, such as {"limits": {"memory": "2Gi"}}.',
        widget="json",
        rows=4,
        advanced=True,
        when=_KUBERNETES,
    )
    namespace: str | None = param(
        "Namespace",
        "One of those that this server may use. Default: the first one.",
        advanced=True,
        when=_KUBERNETES,
    )
    schema: dict[str, Any] | None = BODY_SCHEMA


@block_type(
    type="job",
    title="Job",
    description="Starts work on another system and waits until it calls back.",
    category="action",
    effect="write",
    pauses=True,
    params=_Params.json_schema,
    output=CALLED,
    check=_check,
    sentence="Run {image} | Start a job at {url} | Start a job",
    icon="job",
)
async def block(ctx: StepContext) -> Suspend:
    params = _Params(ctx.params)
    if params.adapter == "kubernetes":
        message = ("job", orjson.dumps(_kubernetes(params, services_of(ctx).kubernetes)))
    else:
        message = ("request", orjson.dumps(_http(params)))
    return until_called(ctx, params, params.schema, ctx.name, (message,))


def _http(params: _Params) -> dict[str, Any]:
    if params.url is None:
        raise invalid("URL is required")
    return {
        "url": web_address(params.url, "url"),
        "method": "POST",
        "headers": header_texts(params.headers, OWN_HEADERS),
        "body": {} if params.job is None else params.job,
    }


def _kubernetes(params: _Params, permitted: tuple[str, ...]) -> dict[str, Any]:
    if not permitted:
        raise invalid("this server may not create Jobs", hint="WEFT_KUBERNETES names the namespaces that it may use")
    namespace = params.namespace or permitted[0]
    if namespace not in permitted or not _NAMESPACE.fullmatch(namespace):
        raise invalid(f"namespace {namespace[:80]!r} is not one that this server may use: {', '.join(permitted)}")
    if params.image is None:
        raise invalid("Image is required")
    return {
        "namespace": namespace,
        "image": params.image,
        "command": [as_text("command", item) or "" for item in params.command or ()],
        "args": [as_text("args", item) or "" for item in params.args or ()],
        "env": {str(name): as_text(name, value) or "" for name, value in (params.env or {}).items()},
        "resources": params.resources or {},
    }
