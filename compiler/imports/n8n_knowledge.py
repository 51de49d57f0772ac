"""The vector stores of n8n -> collections under Knowledge, which have their own embedding, splitting and search."""

from __future__ import annotations

from typing import Any, Final

from compiler.imports.n8n_step import Made, Node, Step, located
from compiler.imports.n8n_text import slug
from compiler.imports.sim_text import number_in

_NAMES: Final = (
    "indexName", "pineconeIndex", "tableName", "qdrantCollection", "weaviateCollection", "mongoCollection",
    "milvusCollection", "redisIndex", "memoryKey",
)  # fmt: skip
_NAME: Final = "={{ String($json.id ?? $json.name ?? $json.title ?? $json.url ?? $itemIndex) }}"
_FOUND: Final = (
    "(<@.results> ?? []).map((one) => ({ document: { pageContent: one.text, metadata: { source: one.source, "
    "title: one.title } }, score: one.score }))"
)


def is_store(kind: str) -> bool:
    return kind.startswith("vectorStore")


def store_of(node: Node) -> Node | None:
    """Return the vector store of a tool or a retriever, which is connected with it or is itself one."""
    if is_store(node.kind):
        return node
    below = [*node.sub.get("ai_vectorStore", ()), *node.sub.get("ai_retriever", ())]
    return next((found for one in below if (found := store_of(one)) is not None), None)


def collection(step: Step, node: Node) -> str:
    chosen = next((one for name in _NAMES if (one := located(node.params.get(name))) not in (None, "")), "documents")
    name = slug(str(chosen).removeprefix("="))
    hint = f'Make the collection "{name}" under Knowledge, and add the documents of the store.'
    step.lose(f'The vector store "{node.name}" becomes a collection.', hint)
    return name


def store(step: Step) -> Made | None:
    """A vector store by itself adds documents, or searches."""
    mode = step.text("mode") or ("insert" if step.node.sub.get("ai_document") else "load")
    params: dict[str, Any] = {"collection": collection(step, step.node)}
    if mode == "load":
        count = number_in(step.get("topK", otherwise=4))
        params |= {"query": step.value("prompt", otherwise=""), "limit": int(count) if isinstance(count, int) else 4}
        return Made("knowledge", params, None, _FOUND)
    if mode not in ("insert", "update"):
        return None
    loader = next(iter(step.node.sub.get("ai_document", ())), None)
    settings = loader.params if loader is not None else {}
    file = None
    if settings.get("dataType") == "binary" or (loader is not None and loader.kind == "documentBinaryInputLoader"):
        found = step.texts.scope.file_of(str(settings.get("binaryDataKey") or "data"))
        file = f"<{found}>" if found is not None else None
    given = settings.get("jsonData") if settings.get("jsonMode") == "expressionData" else None
    content = file or step.texts.value(given or "={{ JSON.stringify($json) }}", "content")
    name = f"{file[:-1]}.name>" if file else step.texts.value(_NAME, "name")
    return Made("knowledge", {**params, "operation": "add", "name": name, "content": content}, None)
