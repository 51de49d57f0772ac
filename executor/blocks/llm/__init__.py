"""Language models: one conversation in, one reply out, from any server of models. `base` has the shapes, `endpoints`
the known models, `client` the calls for blocks. `provider` calls the servers, over `transport`, and is loaded with the
first call: it needs the extra `llm`.
"""
