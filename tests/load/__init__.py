"""Many at once: waiting runs, timers, readers of event streams. `make check` takes a sample, `make soak` the whole."""
