"""The nodes of n8n that ask a language model -> blocks. Their model, memory, tools and parser are nodes of their own,
which are connected with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from compiler.catalog import Catalog
from compiler.imports import missing_workflow
from compiler.imports.n8n_knowledge import collection, store_of
from compiler.imports.n8n_services import connection_of, connector, http, service_of, services
from compiler.imports.n8n_step import Made, Node, Step, located
from compiler.imports.n8n_text import listed, slug
from compiler.imports.sim_text import mapping, number_in, parse_json
from compiler.metaschema import problem_of

_ENDPOINTS: Final = {
    "OpenAi": "openai", "Anthropic": "anthropic", "GoogleGemini": "google", "GoogleVertex": "google", "Groq": "groq",
    "MistralCloud": "mistral", "Ollama": "ollama", "OpenRouter": "openrouter", "DeepSeek": "deepseek", "XAiGrok": "xai",
    "AzureOpenAi": "azure", "AwsBedrock": "bedrock", "HuggingFaceInference": "huggingface", "Cohere": "cohere",
    "OpenHuggingFaceInference": "huggingface",
}  # fmt: skip
_AI: Final = re.compile(
    r"""\$fromAI\s*\(\s*(["'`])(.*?)\1(?:\s*,\s*(["'`])([\s\S]*?)\3)?(?:\s*,\s*(["'`])(\w+)\5)?[^()]*\)""",
    re.IGNORECASE,
)
_TEMPLATE: Final = re.compile(r"\{\{\s*`([^`]*)`\s*\}\}")
_HOLE: Final = re.compile(r"\$\{\s*(\$fromAI\s*\([^()]*\))\s*\}", re.IGNORECASE)
_TYPES: Final = ("string", "number", "boolean", "object", "array")
_PLACE: Final = re.compile(r"\{(\w+)\}")
_JSON_OUT: Final = ((("output",), "content"), (("text",), "content"), (("response",), "content"))
_MESSAGE: Final = ((("message", "content"), "content"), (("content",), "content"), (("text",), "content"))


def _model(step: Step) -> dict[str, Any]:
    """The model of the node that is connected; without one, that of the installation."""
    node = next(iter(step.node.sub.get("ai_languageModel", ())), None)
    if node is None and "openai" in step.node.kind.lower():
        node = step.node
    if node is None:
        step.lose(
            "It has no model and gets default:model.", "Choose one, or start the server with WEFT_MODEL_DEFAULT=<URL>."
        )
        return {"model": "default:model"}
    kind = re.sub(r"^lm(Chat|Open)?", "", node.kind)
    endpoint = "openai" if node is step.node else _ENDPOINTS.get(kind, slug(kind))
    chosen = next(
        (located(node.params[key]) for key in ("modelId", "model", "modelName") if node.params.get(key)), None
    )
    chosen = str(chosen or {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5"}.get(endpoint, "model"))
    chosen = str(step.texts.value(chosen, "model")).removeprefix("models/")
    out: dict[str, Any] = {"model": f"{endpoint}:{chosen}"}
    if endpoint not in ("openai", "anthropic"):
        hint = f"Start the server with WEFT_MODEL_{endpoint.upper()}=<URL>."
        step.lose(f"Its model is served by {endpoint}.", hint)
    else:
        step.lose(
            f"Its {endpoint} account is not imported.", f"Store the secret {endpoint.upper()}_API_KEY on the server."
        )
    options = mapping(node.params.get("options"))
    for theirs, ours in (
        ("temperature", "temperature"),
        ("maxTokens", "max_tokens"),
        ("maxTokensToSample", "max_tokens"),
    ):
        number = number_in(options.get(theirs))
        if isinstance(number, int | float) and number > 0:
            out[ours] = int(number) if ours == "max_tokens" else number
    return out


def _memory(step: Step) -> dict[str, Any]:
    node = next(iter(step.node.sub.get("ai_memory", ())), None)
    if node is None:
        return {}
    key = node.params.get("sessionKey") if node.params.get("sessionIdType") == "customKey" else None
    key = key or node.params.get("sessionKey") or "={{ $json.sessionId }}"
    if node.kind not in ("memoryBufferWindow", "memoryPostgresChat", "memoryRedisChat", "memoryMongoDbChat"):
        step.lose(f'Its memory "{node.name}" becomes the memory of the agent.', "Check the key of the memory.")
    window = number_in(node.params.get("contextWindowLength", 5))
    return {
        "memory": step.texts.value(key, "memory"),
        "memory_messages": max(2, min(400, 2 * int(window))) if isinstance(window, int | float) else 10,
    }


def schema_of(example: Any) -> dict[str, Any]:
    """Return a JSON Schema that an example fits."""
    match example:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case list():
            return {"type": "array", "items": schema_of(example[0]) if example else {}}
        case Mapping():
            fields = {str(key): schema_of(value) for key, value in example.items()}
            return {"type": "object", "properties": fields, "required": list(fields)}
        case str():
            return {"type": "string"}
        case _:
            return {}


def _schema(params: Mapping[str, Any]) -> dict[str, Any] | None:
    for key in ("inputSchema", "jsonSchema"):
        found = parse_json(str(params.get(key) or "").removeprefix("="))
        if isinstance(found, Mapping) and problem_of(dict(found)) is None:
            return dict(found)
    example = parse_json(str(params.get("jsonSchemaExample") or "").removeprefix("="))
    return schema_of(example) if isinstance(example, Mapping | list) else None


def _output(step: Step, out: dict[str, Any]) -> Any:
    """The answer has its fields in `output`; a list is put into an object, as agents answer with one."""
    parser = next(iter(step.node.sub.get("ai_outputParser", ())), None)
    while parser is not None and "ai_outputParser" in parser.sub:  # the one that repairs answers
        parser = next(iter(parser.sub["ai_outputParser"]), None)
    if parser is None:
        return _JSON_OUT
    schema = _schema(parser.params)
    if parser.kind == "outputParserItemList":
        schema = {"type": "array", "items": {"type": "string"}}
    if schema is None:
        step.lose(f'Its output parser "{parser.name}" cannot be read.', "Set the output schema.")
        return _JSON_OUT
    if schema.get("type") == "array":
        schema = {"type": "object", "properties": {"list": schema}, "required": ["list"]}
        out["output_schema"] = schema
        return tuple((theirs, f"{ours}.list") for theirs, ours in _JSON_OUT)
    out["output_schema"] = schema
    return _JSON_OUT


def agent(step: Step, catalog: Catalog | None) -> Made:
    out = _model(step)
    chat = step.item is not None and any(theirs == ("chatInput",) for theirs, _ in step.item.fields)
    given = step.get("text", otherwise=step.get("prompt"))
    if step.text("promptType") in ("auto", "guardrails") or given is None:
        given = "={{ $json.chatInput }}" if chat or step.node.version >= 1.4 else "={{ $json.input }}"
    out["prompt"] = step.texts.value(given, "prompt")
    texts = [step.get("options", "systemMessage")]
    if step.node.kind == "chainLlm":
        texts += [
            one.get("message")
            for one in listed(step.get("messages"), "messageValues")
            if one.get("type", "SystemMessagePromptTemplate").startswith("System")
        ]
    system = [str(step.texts.value(text, "system")) for text in texts if text]
    if system:
        out["system"] = "\n\n".join(system)
    fields = _output(step, out)
    rounds = number_in(step.get("options", "maxIterations"))
    if isinstance(rounds, int) and 0 < rounds <= 100:
        out["max_rounds"] = rounds
    tools: list[dict[str, Any]] = []
    for node in (*step.node.sub.get("ai_tool", ()), *step.node.sub.get("ai_retriever", ())):
        tools.append(_tool(step, node, catalog, {str(tool["name"]) for tool in tools}))
    return Made("agent", out | ({"tools": tools} if tools else {}) | _memory(step), "", fields=fields)


def _image(step: Step) -> Made:
    """A question about an image: one of the item, or one at a URL."""
    out = {**_model(step), "prompt": step.value("text", otherwise="What is in this image?")}
    if step.text("inputType") == "base64":
        out["files"] = step.file("binaryPropertyName")
    else:
        url = step.value("imageUrls", otherwise="")
        out["files"] = f"<{step.first('http', {'url': url, 'save_file': True}, 'image')}.body>"
    return Made("agent", {key: value for key, value in out.items() if value is not None}, "", fields=_MESSAGE)


def message(step: Step, catalog: Catalog | None) -> Made | None:
    """The node of OpenAI: texts, and what is in an image."""
    if (step.text("resource"), step.text("operation")) == ("image", "analyze"):
        return _image(step)
    if step.text("resource") not in ("", "text", "chat", "assistant") or step.text("operation") not in (
        "",
        "message",
        "complete",
        "response",
    ):
        return None
    rows = (
        listed(step.get("messages"), "values")
        or listed(step.get("prompt"), "messages")
        or listed(step.get("responses"), "values")
    )
    out = _model(step)
    texts: dict[str, list[str]] = {"system": [], "user": []}
    for row in rows:
        role = "user" if row.get("role", "user") == "user" else "system"
        texts[role].append(str(step.texts.value(row.get("content", ""), "prompt")))
    prompt = "\n\n".join(texts["user"]) or str(step.value("text", otherwise=step.get("prompt", otherwise="")) or "")
    out["prompt"] = prompt if prompt not in ("", "{}") else texts["system"].pop() if texts["system"] else ""
    if texts["system"]:
        out["system"] = "\n\n".join(texts["system"])
    tools = [_tool(step, node, catalog, set()) for node in step.node.sub.get("ai_tool", ())]
    if tools:
        out["tools"] = tools
    if step.get("jsonOutput") is True:
        step.lose("It answers with JSON, whose form is not known.", "Set the output schema of the agent.")
        out["output_schema"] = {"type": "object"}
    first = "output" if step.text("resource") == "assistant" else "message"
    fields = _JSON_OUT if first == "output" else _MESSAGE
    return Made("agent", out, "", fields=fields)


def classifier(step: Step) -> Made:
    routes: list[dict[str, Any]] = []
    if step.node.kind == "sentimentAnalysis":
        names = [
            n.strip()
            for n in str(step.get("options", "categories", otherwise="Positive, Neutral, Negative")).split(",")
        ]
        routes = [{"id": slug(name), "title": name} for name in names]
    for one in listed(step.get("categories"), "categories"):
        name = str(one.get("category") or "other").removeprefix("=")
        about = step.texts.value(one.get("description", ""), "description")
        routes.append({"id": slug(name), "title": name} | ({"description": about} if about else {}))
    if step.get("options", "fallback") == "other":
        routes.append({"id": "other", "title": "other"})
    params = {**_model(step), "context": step.value("inputText", otherwise=""), "routes": routes}
    return Made("model_router", params, None, handles=[route["id"] for route in routes])


def extractor(step: Step) -> Made:
    schema = _schema(step.node.params)
    if schema is None:
        fields = {
            str(one.get("name")): {
                "type": one["type"] if one.get("type") in _TYPES else "string",
                "description": str(one.get("description") or ""),
            }
            for one in listed(step.get("attributes"), "attributes")
        }
        schema = {"type": "object", "properties": fields, "required": list(fields)}
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {"list": schema}}
    system = step.value("options", "systemPromptTemplate", otherwise="Extract the information from the text.")
    params = {**_model(step), "system": system, "prompt": step.value("text", otherwise=""), "output_schema": schema}
    return Made("agent", params, "", fields=((("output",), "content"),))


def summary(step: Step) -> Made:
    text = step.value("text", otherwise="={{ JSON.stringify($json) }}")
    params = {**_model(step), "system": "Write a concise summary of the text.", "prompt": text}
    return Made(
        "agent",
        params,
        "",
        fields=((("response", "text"), "content"), (("output", "text"), "content"), (("text",), "content")),
    )


# tools


def _tool(step: Step, node: Node, catalog: Catalog | None, taken: set[str]) -> dict[str, Any]:
    """A tool in its place; one that cannot be imported makes the agent fail when the model calls it."""
    params = node.params
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(params.get("name") or node.name)).strip("_")[:60] or "tool"
    name = name if name[0].isalpha() else f"tool_{name}"
    while name in taken:
        name += "_2"
    about = str(params.get("description") or params.get("toolDescription") or "").removeprefix("=")
    out: dict[str, Any] = {"name": name} | ({"description": about} if about else {"description": node.name})
    inner = Step(node, step.id, step.graph, step.region, step.texts, step.item, step.lists, step.single)
    arguments = _arguments(params)
    step.texts.arguments = arguments
    made = _made_tool(inner, node, catalog, arguments)
    step.texts.arguments = ()
    if made is None:
        hint = "Choose a block or a workflow that does the same, or remove the tool."
        step.lose(f'Its tool "{node.name}" is not imported. The agent fails when the model calls it.', hint)
        made = {"workflow": missing_workflow(node.name[:80], "n8n")}
    if arguments:
        made["arguments"] = {"type": "object", "properties": arguments, "required": list(arguments)}
    return {**out, **made}


def _arguments(params: Any) -> dict[str, Any]:
    """Return the arguments that the model fills in, from the expressions of the tool."""
    found: dict[str, Any] = {}
    for text in _texts(params):
        for match in _AI.finditer(text):
            kind = match[6] if match[6] in _TYPES else "string"
            found[_argument(match[2])] = {"type": kind} | ({"description": match[4].strip()} if match[4] else {})
    return found


def _argument(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "value"


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


def _filled(value: Any) -> Any:
    """`$fromAI('x')` as the argument {{x}}, which stays as it is in a text without an expression."""
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _filled(one) for key, one in value.items()}
    if not isinstance(value, str) or "$fromai" not in value.lower():
        return value
    bare = re.sub(r"/\*[\s\S]*?\*/", "", value)
    bare = _TEMPLATE.sub(lambda found: _HOLE.sub(r"{{ \1 }}", found[1]), bare)
    filled = re.sub(
        rf"\{{\{{\s*{_AI.pattern}\s*\}}\}}", lambda m: f"{{{{{_argument(m[2])}}}}}", bare, flags=re.IGNORECASE
    )
    return filled.removeprefix("=") if "$" not in filled else filled


def _made_tool(step: Step, node: Node, catalog: Catalog | None, arguments: dict[str, Any]) -> dict[str, Any] | None:
    kind, params = node.kind, node.params
    if kind == "toolWorkflow":
        target = params.get("workflowId")
        name = mapping(target).get("cachedResultName") or located(target)
        name = step.texts.scope.title() if "$workflow.id" in str(name) else str(name or "")
        schema = _schema(params)
        values = mapping(mapping(params.get("workflowInputs")).get("value"))
        arguments |= mapping(schema.get("properties")) if schema and not arguments else {}
        if not arguments and not values:
            arguments["query"] = {"type": "string"}
        step.lose(
            f'Its tool "{node.name}" runs the n8n workflow "{name}".',
            "Import that workflow, too, and choose it in the tool.",
        )
        return {"workflow": name.split(" — ")[-1]}
    if kind in ("toolHttpRequest", "httpRequestTool"):
        tool = _http_tool(step, node, arguments)
        return None if _left_to_the_model(step) else tool
    if kind == "toolCode" and params.get("language", "javaScript") == "javaScript":
        schema = _schema(params)
        arguments |= mapping(schema.get("properties")) if schema else {"query": {"type": "string"}}
        first = "query" if "query" in arguments else next(iter(arguments))
        code = re.sub(r"\$\{(\w+)\}", r"${ \1 }", str(params.get("jsCode") or "return query;"))
        given = f"args.{first}" if not schema else "args"
        return {"block": "function", "params": {"code": f"const query = {given};\n{code}"}}
    if (found := store_of(node)) is not None:
        return {"block": "knowledge", "params": {"collection": collection(step, found)}}
    if (known := services()["tools"].get(kind)) is not None:
        arguments |= known["arguments"]
        return {"block": known["block"], "params": known["params"]}
    if kind in ("mcpClientTool", "mcpClient"):
        url = params.get("endpointUrl") or params.get("sseEndpoint") or ""
        mcp: dict[str, Any] = {"url": step.texts.value(url, "url")}
        if params.get("authentication") not in (None, "", "none"):
            mcp["connection"] = connection_of(node, "mcp")
        arguments.clear()
        return {"mcp": mcp}
    if service_of(kind) is not None:
        asked = Step(
            _with(node, _filled(params)), step.id, step.graph, step.region, step.texts, step.item, [], step.single
        )
        made = connector(asked, catalog)
        for id in asked.before:  # a tool is one request
            del step.graph.blocks[id]
            made = None
        made = None if _left_to_the_model(step) else made
        return None if made is None else {"block": made.type, "params": made.params}
    return None


def _left_to_the_model(step: Step) -> bool:
    """Remove the values that only the tool knows, because the model fills them in. Returns whether there were any."""
    found = [key for key, js in step.texts.hoisted.items() if "fromai" in js.lower()]
    for key in found:
        del step.texts.hoisted[key]
    return bool(found)


def _http_tool(step: Step, node: Node, arguments: dict[str, Any]) -> dict[str, Any]:
    """The older node has {name} in its texts, and lists where the model fills in values."""
    params = {**_filled(node.params)}
    if node.kind == "toolHttpRequest":
        known = {str(one.get("name")): one for one in listed(params.get("placeholderDefinitions"), "values")}
        for text in _texts({key: params.get(key) for key in ("url", "jsonBody", "jsonQuery", "jsonHeaders")}):
            for name in _PLACE.findall(re.sub(r"\{\{.*?\}\}", "", text)):
                known.setdefault(name, {})
        for theirs, ours in (
            ("parametersQuery", "queryParameters"),
            ("parametersBody", "bodyParameters"),
            ("parametersHeaders", "headerParameters"),
        ):
            rows = [
                {"name": one.get("name"), "value": one.get("value") or f"{{{one.get('name')}}}"}
                for one in listed(params.get(theirs), "values")
            ]
            for row in rows:
                known |= {name: known.get(name, {}) for name in _PLACE.findall(str(row["value"]))}
            params[ours] = {"parameters": rows}
        for name, one in known.items():
            arguments[name] = {"type": one["type"] if one.get("type") in _TYPES else "string"} | (
                {"description": one["description"]} if one.get("description") else {}
            )
        params = {key: _braced(value, set(known)) for key, value in params.items()}
    made = http(Step(_with(node, params), step.id, step.graph, step.region, step.texts, step.item, [], step.single))
    return {"block": "http", "params": {key: value for key, value in made.params.items() if key != "save_file"}}


def _braced(value: Any, names: set[str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda m: f"{{{{{m[1]}}}}}" if m[1] in names else m[0], value)
    if isinstance(value, Mapping):
        return {key: _braced(one, names) for key, one in value.items()}
    return [_braced(one, names) for one in value] if isinstance(value, list) else value


def _with(node: Node, params: Mapping[str, Any]) -> Node:
    return Node(
        node.name, node.id, node.kind.removesuffix("Tool"), node.version, params, node.pointer, node.raw, node.sub
    )
