"""`agent`: `block` has its loop, `params` its params, `tools` what the model may call, `calls` and `servers` how these
are called, `condition` which calls a person must approve, and `memory` what is remembered between runs."""
