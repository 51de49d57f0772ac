from __future__ import annotations

import hashlib

from executor.kernel.store.topics.connectors import ConnectorRow
from executor.kernel.store.topics.store import Store
from tests.support.rows import T0


def connector(service: str, document: bytes = b"{}", at_ms: int = T0) -> ConnectorRow:
    return ConnectorRow(service, document, hashlib.sha256(document).hexdigest(), "ada", at_ms)


async def test_a_new_document_takes_the_place_of_the_one_before_it(store: Store) -> None:
    assert await store.put_connector(connector("tea"))
    assert not await store.put_connector(connector("tea", at_ms=T0 + 1)), "the same document"
    second = connector("tea", b'{"title":"T\xc3\xa9a"}', T0 + 2)
    assert await store.put_connector(second)
    assert await store.get_connectors(["tea"]) == [second]


async def test_connectors_are_found_by_service(store: Store) -> None:
    for service in ("tea", "Tea", "a_1"):
        assert await store.put_connector(connector(service))
    assert [row.service for row in await store.get_connectors(["tea", "none", "Tea"])] == ["Tea", "tea"]
    assert await store.get_connectors([]) == []
    hash = connector("tea").hash
    assert await store.connector_hashes() == {"tea": hash, "Tea": hash, "a_1": hash}


async def test_a_deleted_connector_is_gone_and_may_come_again(store: Store) -> None:
    await store.put_connector(connector("tea"))
    assert await store.delete_connector("tea") and not await store.delete_connector("tea")
    assert await store.connector_hashes() == {}
    assert await store.put_connector(connector("tea"))
