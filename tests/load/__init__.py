"""Many at once: waiting runs, timers, readers of event streams. `make test` takes a sample of each, `make soak` the whole."""
