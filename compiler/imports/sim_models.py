"""Sim's blocks that ask a language model -> ours: agent, router, evaluator, guardrails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compiler.imports.sim_foreign import lost_tool
from compiler.imports.sim_text import Loss, Texts, parse_json

MODEL_PARAMS = ("model", "apiKey", "temperature", "maxTokens")
_ENDPOINTS = ((re.compile(r"(gpt-|o\d|chatgpt)"), "openai"), (re.compile(r"claude"), "anthropic"))
# Endpoints that the operator sets; Sim has them built in.
_OTHERS = (
    (re.compile(r"gemini"), "google"),
    (re.compile(r"grok"), "xai"),
    (re.compile(r"(mistral|magistral|ministral|codestral|devstral)"), "mistral"),
    (re.compile(r"deepseek"), "deepseek"),
)
_NO_MODEL = "default:model"
_CHECKS = {"json": "json", "regex": "regex", "pii": "pii", "hallucination": "model"}
# Sim's kinds that have a pattern here.
_PERSONAL = {
    "EMAIL_ADDRESS": "email",
    "PHONE_NUMBER": "phone",
    "CREDIT_CARD": "credit_card",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip_address",
    "US_SSN": "us_ssn",
}
_METRIC = re.compile(r"[^A-Za-z0-9_]")
_GROUNDED = "Every statement must be supported by what is known. What is known is part of the text."


def model_params(params: Mapping[str, Any], texts: Texts, losses: list[Loss]) -> dict[str, Any]:
    """Sim names models without their endpoint."""
    out: dict[str, Any] = {}
    named = str(params.get("model") or "").strip()
    if named:
        out["model"] = texts.text(_model(named, losses))
    key = str(params.get("apiKey") or "").strip()
    if secret := texts.secret(key, losses, "Its API key"):
        out["api_key"] = secret
    elif key:
        losses.append(Loss("Its API key is not imported.", "Store the key as a secret and choose it in the block."))
    for theirs, ours in (("temperature", "temperature"), ("maxTokens", "max_tokens")):
        number = parse_json(params.get(theirs))
        if isinstance(number, int | float) and not isinstance(number, bool):
            out[ours] = int(number) if ours == "max_tokens" else number
    return out


def _model(named: str, losses: list[Loss]) -> str:
    prefix, slash, rest = named.partition("/")
    if "<" in named:
        return named
    if slash:
        return _served(prefix.replace("-", "_"), rest, losses)
    for pattern, endpoint in _ENDPOINTS:
        if pattern.match(named):
            return f"{endpoint}:{named}"
    for pattern, endpoint in _OTHERS:
        if pattern.match(named):
            return _served(endpoint, named, losses)
    hint = "Write it as <endpoint>:<model>, and start the server with WEFT_MODEL_<ENDPOINT>=<URL>."
    losses.append(Loss(f'The endpoint of its model "{named}" is not known.', hint))
    return named


def _served(endpoint: str, model: str, losses: list[Loss]) -> str:
    """Return a model whose endpoint the operator has to set."""
    hint = f"Start the server with WEFT_MODEL_{endpoint.upper()}=<URL>."
    losses.append(Loss(f"Its model is served by {endpoint}.", hint))
    return f"{endpoint}:{model}"


# By the kind of Sim: where it has the size, our param, its bound, and the size where Sim has none.
_MEMORIES = {
    "conversation": ("", "memory_messages", 400, 400),
    "sliding_window": ("slidingWindowSize", "memory_messages", 400, 10),
    "sliding_window_tokens": ("slidingWindowTokens", "memory_tokens", 1_000_000, 4_000),
}


def agent(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Newer agents have a list of messages, older ones two texts. Sim's tools belong to its vendors' services: each is
    named in a finding with the next step."""
    out = model_params(params, texts, losses)
    if "model" not in out:
        out["model"] = _NO_MODEL
        hint = "Choose one, or start the server with WEFT_MODEL_DEFAULT=<URL>."
        losses.append(Loss(f"It names no model and gets {_NO_MODEL}.", hint))
    system = [str(params.get("systemPrompt") or "")]
    said: list[dict[str, Any]] = []
    listed = parse_json(params.get("messages"))
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("content"), str):
            losses.append(Loss("A message that cannot be read is left out.", "Add the message."))
        elif item.get("role") == "system":
            system.append(item["content"])
        else:
            role = "assistant" if item.get("role") == "assistant" else "user"
            said.append({"role": role, "content": texts.text(item["content"])})
    asked = params.get("userPrompt", params.get("context"))
    if asked in (None, "") and said and said[-1]["role"] == "user":
        out["prompt"] = said.pop()["content"]
    elif asked not in (None, ""):
        out["prompt"] = texts.value(parse_json(asked) if isinstance(asked, str) else asked)
    instructions = texts.text("\n\n".join(filter(None, system)))
    if instructions and (said or "prompt" in out):
        out["system"] = instructions
    elif instructions:
        out["prompt"] = instructions
        losses.append(Loss("It has instructions only: they are its prompt.", "Add what it is asked about."))
    if said:
        out["messages"] = said
    schema = _output_schema(params.get("responseFormat"), losses)
    if schema:
        out["output_schema"] = schema
    tools = parse_json(params.get("tools"))
    kept: dict[str, dict[str, Any]] = {}
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, Mapping) and tool.get("usageControl") != "none":
            in_its_place, loss = lost_tool(tool, kept)
            kept[in_its_place["name"]] = in_its_place
            losses.append(loss)
    if kept:
        out["tools"] = list(kept.values())
    out |= _memory(params, texts, losses)
    return "agent", out


def _memory(params: Mapping[str, Any], texts: Texts, losses: list[Loss]) -> dict[str, Any]:
    """Sim remembers the whole conversation of an id, or its last messages or tokens."""
    if parse_json(params.get("memories")):
        losses.append(Loss("Its memory is not imported.", "Pass earlier messages in Messages."))
    kind, key = params.get("memoryType"), params.get("conversationId")
    if kind in (None, "", "none"):
        return {}
    if kind not in _MEMORIES or not isinstance(key, str) or not key.strip():
        losses.append(Loss("Its memory is not imported.", "Set a memory key, the id of the conversation."))
        return {}
    source, param, most, otherwise = _MEMORIES[kind]
    size = str(params.get(source) or "")
    number = int(size) if size.isascii() and size.isdecimal() and len(size) < 10 else otherwise
    return {"memory": texts.value(key), param: max(1, min(number, most))}


def _output_schema(given: Any, losses: list[Loss]) -> dict[str, Any] | None:
    """Return the schema in a JSON Schema, or in {name, schema, strict} or {type, json_schema} around one."""
    found = parse_json(given)
    if found in (None, ""):
        return None
    if isinstance(found, Mapping) and isinstance(found.get("json_schema"), Mapping):
        found = found["json_schema"]
    if isinstance(found, Mapping) and isinstance(found.get("schema"), Mapping):
        found = found["schema"]
    if isinstance(found, Mapping) and isinstance(found.get("properties"), Mapping):
        return dict(found)
    losses.append(Loss("Its response format cannot be read.", "Set the output schema."))
    return None


def router(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Sim's routers have the description of a route in its value."""
    routes: list[dict[str, Any]] = []
    items = parse_json(params.get("routes"))
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and isinstance(item.get("id"), str):
            title, about = str(item.get("title") or ""), texts.text(str(item.get("value") or ""))
            routes.append({"id": item["id"], "title": title} | ({"description": about} if about else {}))
    context = params.get("context", params.get("prompt"))
    out = {"context": texts.value("" if context is None else context), "routes": routes}
    if params.get("systemPrompt"):
        out["instructions"] = texts.text(str(params["systemPrompt"]))
    return "model_router", {**model_params(params, texts, losses), **out}


def evaluator(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    metrics: list[dict[str, Any]] = []
    items = parse_json(params.get("metrics"))
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str) or not item["name"].strip():
            losses.append(Loss("A metric that cannot be read is left out.", "Add the metric."))
            continue
        bounds = parse_json(item.get("range"))
        metric: dict[str, Any] = {"name": metric_name(item["name"]), "description": str(item.get("description") or "")}
        for bound in ("min", "max"):
            value = parse_json(bounds.get(bound)) if isinstance(bounds, Mapping) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                metric[bound] = value
        metrics.append(metric)
    content = params.get("content")
    out = {"content": texts.value("" if content is None else content), "metrics": metrics}
    return "evaluator", {**model_params(params, texts, losses), **out}


def metric_name(name: str) -> str:
    """Sim refers to a metric by its name in lower case."""
    plain = _METRIC.sub("_", name.strip().lower())
    return plain if plain[:1].isalpha() else f"m_{plain}"


def guardrails(name: str, params: dict[str, Any], texts: Texts, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """Sim's block has one exit, and its output shows whether the text passed; ours has an exit for each case."""
    kind = str(params.get("validationType") or "json")
    given = params.get("input")
    out: dict[str, Any] = {"input": texts.value("" if given is None else given), "check": _CHECKS.get(kind, "json")}
    match kind:
        case "regex":
            out["pattern"] = str(params.get("regex") or "")
        case "pii":
            listed = parse_json(params.get("piiEntityTypes"))
            kinds = [str(item) for item in listed] if isinstance(listed, list) else []
            known = [_PERSONAL[item] for item in kinds if item in _PERSONAL]
            foreign = [item for item in kinds if item not in _PERSONAL]
            if known:
                out["pii"] = known
            if foreign:
                hint = "Ask a model about them, in another guardrail."
                losses.append(Loss(f"These kinds of personal data are not found: {', '.join(foreign[:10])}.", hint))
        case "hallucination":
            out |= {"rule": _GROUNDED, **model_params(params, texts, losses)}
            hint = "Put what is known into the input of the block."
            losses.append(Loss("Its knowledge base is not imported.", hint))
        case "json":
            pass
        case _:
            losses.append(Loss(f'Its check "{kind[:40]}" is not imported.', "Choose the check in the block."))
    return "guardrail", out
