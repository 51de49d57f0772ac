"""The places where a registered function runs: `policy.runner` of its block.

    inline    in this process: in a thread, or in the event loop (`kernel.process.threads`); nothing here is used
    process   in a child process of this machine (`process`)
    dask      on a cluster of dask.distributed (`dask`)

Calls and results are JSON, the same values as in the journal (`call`). The other side is `far`: it imports the function
by name and calls it. A process that ends takes one attempt with it: `executor.errors.Lost`, and the policy of the plan
decides what follows. See docs/decisions/0025-runners.md.
"""
