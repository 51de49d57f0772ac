"""`job`: starts work somewhere else and waits, without memory, until it calls back.

A job is started after the wait is on disk, and at least once, so the system that starts it must recognise a repeat by
its name. `http` posts a description of the job; `kubernetes` creates a Job, polls it, and deletes it when it is not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from compiler.catalog import BlockSpec, Finding, Params
from executor.blocks.services import services_of
from executor.blocks.types.callback import OWN_HEADERS, checked_schema
from executor.blocks.types.response import header_texts
from executor.blocks.types.shared_params import (
    EXPIRES_IN_S,
    ON_EXPIRE,
    SENT_HEADERS,
    expiry_ms,
    invalid,
    text,
    web_address,
)
from executor.kernel.handler.base import Context, Suspend

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_HTTP: Final = {"adapter": ["http"]}
_KUBERNETES: Final = {"adapter": ["kubernetes"]}
_TEXTS: Final = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}


def _check(params: Params) -> tuple[Finding, ...]:
    needed, title = ("image", "Image") if params.get("adapter") == "kubernetes" else ("url", "URL")
    if params.get(needed) in (None, ""):
        return (Finding("required", f"/{needed}", f"{title} is required."),)
    return ()


class Job:
    spec = BlockSpec(
        type="job",
        title="Job",
        description="Starts work on another system and waits until it calls back.",
        category="action",
        effect="write",
        pauses=True,
        params={
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "adapter": {
                    "enum": ["http", "kubernetes"],
                    "title": "Start by",
                    "description": "How the work is started.",
                    "default": "http",
                    "x-titles": {"http": "An HTTP request", "kubernetes": "A Kubernetes Job"},
                    "x-weft": "literal",
                    "x-ui": {"order": 1, "widget": "select"},
                },
                "url": {
                    "x-weft": "secret",
                    "x-url": True,
                    "type": "string",
                    "title": "URL",
                    "description": "Receives a POST with the job and callback_url.",
                    "x-when": _HTTP,
                    "x-ui": {"order": 2, "widget": "text"},
                },
                "headers": {**SENT_HEADERS, "description": "Use ${NAME} for secrets.", "x-when": _HTTP},
                "job": {
                    "x-weft": "secret",
                    "title": "Job",
                    "description": "Describes the job. callback_url is added to an object.",
                    "x-when": _HTTP,
                    "x-ui": {"order": 4, "widget": "json", "rows": 6},
                },
                "image": {
                    "type": "string",
                    "title": "Image",
                    "description": "Container image. It finds the URL to call in WEFT_CALLBACK_URL.",
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 5, "widget": "text"},
                },
                "command": {
                    **_TEXTS,
                    "title": "Command",
                    "description": "Leave empty for that of the image.",
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 6, "widget": "json", "rows": 2},
                },
                "args": {
                    **_TEXTS,
                    "title": "Arguments",
                    "description": "A list of texts.",
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 7, "widget": "json", "rows": 2},
                },
                "env": {
                    "type": "object",
                    "title": "Environment",
                    "description": "More variables, such as settings of the job.",
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 8, "widget": "keyvalues"},
                },
                "resources": {
                    "type": "object",
                    "title": "Resources",
                    "description": 'Requests and limits, such as {"limits": {"memory": "2Gi"}}.',
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 9, "widget": "json", "rows": 4, "advanced": True},
                },
                "namespace": {
                    "type": "string",
                    "title": "Namespace",
                    "description": "One of those that this server may use. Default: the first one.",
                    "x-when": _KUBERNETES,
                    "x-ui": {"order": 10, "widget": "text", "advanced": True},
                },
                "schema": {
                    "type": "object",
                    "title": "Body schema",
                    "description": "JSON Schema. A body that does not match is rejected and the block keeps waiting.",
                    "x-ui": {"order": 11, "widget": "schema"},
                },
                "expires_in_s": {**EXPIRES_IN_S, "x-ui": {"order": 12, "widget": "number"}},
                "on_expire": {**ON_EXPIRE, "x-ui": {"order": 13, "widget": "select"}},
            },
        },
        output={
            "type": "object",
            "properties": {
                "body": {},
                "headers": {"type": "object", "additionalProperties": True},
                "received_at": {"type": "integer", "description": "Unix milliseconds"},
            },
        },
        check=_check,
        sentence="Run {image} | Start a job at {url} | Start a job",
        icon="job",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid)."""
        params = ctx.params
        on_expire = text(params, "on_expire") or "fail"
        if on_expire not in ("fail", "continue", "skip"):
            raise invalid(f"on_expire must be fail, continue or skip, not {on_expire[:80]!r}")
        if params.get("adapter") == "kubernetes":
            message = ("job", orjson.dumps(_kubernetes(params, services_of(ctx).kubernetes)))
        else:
            message = ("request", orjson.dumps(_http(params)))
        return Suspend(
            "webhook",
            request={"title": ctx.name},
            schema=checked_schema(params.get("schema")),
            due_ms=expiry_ms(params, ctx.now_ms),
            on_expire=on_expire,
            messages=(message,),
        )


def _http(params: Mapping[str, Any]) -> dict[str, Any]:
    url = text(params, "url")
    if url is None:
        raise invalid("URL is required")
    job = params.get("job")
    return {
        "url": web_address(url, "url"),
        "method": "POST",
        "headers": header_texts(params.get("headers"), OWN_HEADERS),
        "body": {} if job is None else job,
    }


def _kubernetes(params: Mapping[str, Any], permitted: tuple[str, ...]) -> dict[str, Any]:
    if not permitted:
        raise invalid("this server may not create Jobs", hint="WEFT_KUBERNETES names the namespaces that it may use")
    namespace = text(params, "namespace") or permitted[0]
    if namespace not in permitted or not _NAMESPACE.fullmatch(namespace):
        raise invalid(f"namespace {namespace[:80]!r} is not one that this server may use: {', '.join(permitted)}")
    image = text(params, "image")
    if image is None:
        raise invalid("Image is required")
    env, resources = params.get("env") or {}, params.get("resources") or {}
    if not isinstance(env, dict) or not isinstance(resources, dict):
        raise invalid("env and resources must be objects")
    return {
        "namespace": namespace,
        "image": image,
        "command": _list(params, "command"),
        "args": _list(params, "args"),
        "env": {str(name): text(env, name) or "" for name in env},
        "resources": resources,
    }


def _list(params: Mapping[str, Any], name: str) -> list[str]:
    value = params.get(name) or []
    if not isinstance(value, list):
        raise invalid(f"{name} must be a list")
    return [text({name: item}, name) or "" for item in value]


block = Job()
