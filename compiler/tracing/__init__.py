"""Workflows as functions: `@step` functions that a `@workflow` function awaits; traced, they are a document.

Pure: a trace calls the workflow function, never a step. `trace` records the calls, as blocks of `compiler.builder`;
`graph` has the scopes and edges, `values` are the placeholders, `calls` and `ways` are the functions besides steps.
"""
