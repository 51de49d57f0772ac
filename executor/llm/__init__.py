"""Language models: one conversation in, one reply out, from any server of models. `base` has the shapes, `endpoints`
which models there are, `client` what blocks call. `provider` speaks to the servers, over `transport`, and is loaded
with the first call: it needs the extra `llm`."""
