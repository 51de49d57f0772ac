"""Workflows as functions: `@step` functions that a `@workflow` function calls; traced, they are a document.

Pure: a trace calls the workflow function, never a step. `trace` records what is called, `graph` knows what waits for
what, `values` are the placeholders, `calls` is what there is beside steps.
"""
