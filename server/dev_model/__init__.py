"""`weft dev-model`: a server of language models that has none. It speaks the wire formats of OpenAI (chat completions)
and Anthropic (messages), and answers from a script, for tests and for people without a key. `script` decides what is
answered, `openai` and `anthropic` read and write the formats, `app` serves them."""
