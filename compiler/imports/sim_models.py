"""Sim's blocks that ask a language model -> ours: agent, router, evaluator, guardrails."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compiler.imports.sim_services import service_of, tool_of
from compiler.imports.sim_text import Settings, is_number, mapping, parse_json

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


def model_params(block: Settings) -> dict[str, Any]:
    """Sim names models without their endpoint."""
    out: dict[str, Any] = {}
    if named := block.text("model").strip():
        out["model"] = block.texts.text(_model(named, block))
    if secret := block.secret("apiKey", "Its API key"):
        out["api_key"] = secret
    elif block.text("apiKey").strip():
        block.lose("Its API key is not imported.", "Store the key as a secret and choose it in the block.")
    for theirs, ours in (("temperature", "temperature"), ("maxTokens", "max_tokens")):
        number = block.json(theirs)
        if is_number(number):
            out[ours] = int(number) if ours == "max_tokens" else number
    return out


def _model(named: str, block: Settings) -> str:
    prefix, slash, rest = named.partition("/")
    if "<" in named:
        return named
    if slash:
        return _served(prefix.replace("-", "_"), rest, block)
    for pattern, endpoint in _ENDPOINTS:
        if pattern.match(named):
            return f"{endpoint}:{named}"
    for pattern, endpoint in _OTHERS:
        if pattern.match(named):
            return _served(endpoint, named, block)
    hint = "Write it as <endpoint>:<model>, and start the server with WEFT_MODEL_<ENDPOINT>=<URL>."
    block.lose(f'The endpoint of its model "{named}" is not known.', hint)
    return named


def _served(endpoint: str, model: str, block: Settings) -> str:
    hint = f"Start the server with WEFT_MODEL_{endpoint.upper()}=<URL>."
    block.lose(f"Its model is served by {endpoint}.", hint)
    return f"{endpoint}:{model}"


# By the kind of Sim: where it has the size, our param, its bound, and the size where Sim has none.
_MEMORIES = {
    "conversation": ("", "memory_messages", 400, 400),
    "sliding_window": ("slidingWindowSize", "memory_messages", 400, 10),
    "sliding_window_tokens": ("slidingWindowTokens", "memory_tokens", 1_000_000, 4_000),
}


def agent(block: Settings) -> dict[str, Any]:
    """Newer agents have a list of messages, older ones two texts. Sim's tools belong to its vendors' services: they are
    operations of connectors here, or are named in a finding with the next step."""
    texts = block.texts
    out = model_params(block)
    if "model" not in out:
        out["model"] = _NO_MODEL
        hint = "Choose one, or start the server with WEFT_MODEL_DEFAULT=<URL>."
        block.lose(f"It names no model and gets {_NO_MODEL}.", hint)
    system = [block.text("systemPrompt")]
    messages: list[dict[str, Any]] = []
    for item in block.items("messages"):
        if not isinstance(item, Mapping) or not isinstance(item.get("content"), str):
            block.lose("A message that cannot be read is left out.", "Add the message.")
        elif item.get("role") == "system":
            system.append(item["content"])
        else:
            role = "assistant" if item.get("role") == "assistant" else "user"
            messages.append({"role": role, "content": texts.text(item["content"])})
    asked = block.get("userPrompt", block.get("context"))
    if asked in (None, "") and messages and messages[-1]["role"] == "user":
        out["prompt"] = messages.pop()["content"]
    elif asked not in (None, ""):
        out["prompt"] = texts.value(parse_json(asked))
    instructions = texts.text("\n\n".join(filter(None, system)))
    if instructions and (messages or "prompt" in out):
        out["system"] = instructions
    elif instructions:
        out["prompt"] = instructions
        block.lose("It has instructions only: they are its prompt.", "Add what it is asked about.")
    if messages:
        out["messages"] = messages
    if schema := _output_schema(block):
        out["output_schema"] = schema
    kept: dict[str, dict[str, Any]] = {}
    for tool in block.items("tools"):
        if isinstance(tool, Mapping) and tool.get("usageControl") != "none":
            file = mapping(tool.get("params")).get("fileReference")
            if service_of(str(tool.get("type"))) == "mistral_parse" and isinstance(file, str) and "<" in file:
                out["files"] = texts.text(file)
                block.lose("Its model reads the file itself, in place of a tool.", "Choose a model that reads files.")
                continue
            in_its_place, losses = tool_of(tool, kept, texts)
            kept[in_its_place["name"]] = in_its_place
            block.losses += losses
    if kept:
        out["tools"] = list(kept.values())
    return out | _memory(block)


def _memory(block: Settings) -> dict[str, Any]:
    """Sim remembers the whole conversation of an id, or its last messages or tokens."""
    if block.json("memories"):
        block.lose("Its memory is not imported.", "Pass earlier messages in Messages.")
    kind, key = block.get("memoryType"), block.get("conversationId")
    if kind in (None, "", "none"):
        return {}
    if kind not in _MEMORIES or not isinstance(key, str) or not key.strip():
        block.lose("Its memory is not imported.", "Set a memory key, the id of the conversation.")
        return {}
    source, param, most, otherwise = _MEMORIES[kind]
    size = block.text(source)
    number = int(size) if size.isascii() and size.isdecimal() and len(size) < 10 else otherwise
    return {"memory": block.texts.value(key), param: max(1, min(number, most))}


def _output_schema(block: Settings) -> dict[str, Any] | None:
    """Return the schema in a JSON Schema, or in {name, schema, strict} or {type, json_schema} around one."""
    found = block.json("responseFormat")
    if found in (None, ""):
        return None
    for around in ("json_schema", "schema"):
        if isinstance(found, Mapping) and isinstance(found.get(around), Mapping):
            found = found[around]
    if isinstance(found, Mapping) and isinstance(found.get("properties"), Mapping):
        return dict(found)
    block.lose("Its response format cannot be read.", "Set the output schema.")
    return None


def router(block: Settings) -> dict[str, Any]:
    """Sim's routers have the description of a route in its value."""
    routes: list[dict[str, Any]] = []
    for item in block.items("routes"):
        if isinstance(item, Mapping) and isinstance(item.get("id"), str):
            title, about = str(item.get("title") or ""), block.texts.text(str(item.get("value") or ""))
            routes.append({"id": item["id"], "title": title} | ({"description": about} if about else {}))
    context = block.get("context", block.get("prompt"))
    out = {"context": block.texts.value("" if context is None else context), "routes": routes}
    if block.get("systemPrompt"):
        out["instructions"] = block.texts.text(block.text("systemPrompt"))
    return {**model_params(block), **out}


def evaluator(block: Settings) -> dict[str, Any]:
    metrics: list[dict[str, Any]] = []
    for item in block.items("metrics"):
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str) or not item["name"].strip():
            block.lose("A metric that cannot be read is left out.", "Add the metric.")
            continue
        bounds = parse_json(item.get("range"))
        metric: dict[str, Any] = {"name": metric_name(item["name"]), "description": str(item.get("description") or "")}
        for bound in ("min", "max"):
            value = parse_json(bounds.get(bound)) if isinstance(bounds, Mapping) else None
            if is_number(value):
                metric[bound] = value
        metrics.append(metric)
    content = block.get("content")
    out = {"content": block.texts.value("" if content is None else content), "metrics": metrics}
    return {**model_params(block), **out}


def metric_name(name: str) -> str:
    """Sim refers to a metric by its name in lower case."""
    plain = _METRIC.sub("_", name.strip().lower())
    return plain if plain[:1].isalpha() else f"m_{plain}"


def guardrails(block: Settings) -> dict[str, Any]:
    """Sim's block has one exit, and its output shows whether the text passed; ours has an exit for each case."""
    kind, given = block.text("validationType") or "json", block.get("input")
    out = {"input": block.texts.value("" if given is None else given), "check": _CHECKS.get(kind, "json")}
    if kind == "regex":
        out["pattern"] = block.text("regex")
    elif kind == "pii":
        kinds = [str(item) for item in block.items("piiEntityTypes")]
        if known := [_PERSONAL[item] for item in kinds if item in _PERSONAL]:
            out["pii"] = known
        if foreign := [item for item in kinds if item not in _PERSONAL]:
            shown = ", ".join(foreign[:10])
            hint = "Ask a model about them, in another guardrail."
            block.lose(f"These kinds of personal data are not found: {shown}.", hint)
    elif kind == "hallucination":
        out |= {"rule": _GROUNDED, **model_params(block)}
        block.lose("Its knowledge base is not imported.", "Put what is known into the input of the block.")
    elif kind not in _CHECKS:
        block.lose(f'Its check "{kind[:40]}" is not imported.', "Choose the check in the block.")
    return out
