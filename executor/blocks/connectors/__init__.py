"""Connectors: services that are reached by HTTP, each described by a JSON document and a block type of its own.

`document` checks one, `template` fills its requests, `pages` reads long lists, `block` makes the block type, `load`
finds the documents, `openapi` makes one of an OpenAPI description (decision 36).
"""
