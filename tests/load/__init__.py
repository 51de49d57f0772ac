"""Many at once: waiting runs, timers, readers of event streams. `make test` takes a sample, `make soak` the whole."""
