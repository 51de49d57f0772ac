"""The one boundary for everything a user can type: JavaScript in QuickJS, compiled to WebAssembly, run by wasmtime.

    sandbox.py    Sandbox: evaluate, run_code, check_syntax, close; worker threads; read this first
    bound.py      what is evaluated: a source and the values of its references
    simple.py     the expressions whose result Python knows without a guest
    limits.py     the bounds
    guest.py      one call: restore, deadlines, run, classify what stopped it
    prelude.py    the JavaScript side: wrapping, seeded random, console
    instance.py   the WebAssembly instance and the memory image it starts from
    imports.py    what the guest can ask of the host: next to nothing
    artifact.py   the guest program and its compiled form on disk
    ticker.py     epochs, the clock of the hard deadlines

Values go in as JSON and come out as JSON; source text comes from the workflow alone and never contains a value. There
is no weaker fallback: when wasmtime does not run, only simple expressions have a result.
"""
