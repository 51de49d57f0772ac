"""The places where a registered function runs: `policy.runner` of its block.

    inline    in this process: in a thread, or in the event loop (`kernel.process.threads`); nothing here is used
    process   in a child process of this machine (`process`)
    dask      on a cluster of dask.distributed (`dask`)

The other side is `far`: it imports the function by name and calls it. See docs/decisions/0025-runners.md.
"""
