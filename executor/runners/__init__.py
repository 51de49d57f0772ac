"""Where a registered function runs: `policy.runner` of its block.

    inline    in this process: in a thread, or in the event loop (`executor.threads`); nothing here is used
    process   in a child process of this machine (`process`)
    dask      on a cluster of dask.distributed (`dask`)

What crosses is JSON, the same values as in the journal (`call`). The other side is `far`: it imports the function by
name and calls it. A process that is gone takes one attempt with it: `executor.errors.Lost`, and the policy of the plan
says what follows. See docs/decisions/0025-runners.md.
"""
