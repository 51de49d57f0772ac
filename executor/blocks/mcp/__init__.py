"""Tools of MCP servers, over streamable HTTP. `base` has the shapes, `client` the calls for blocks. `session` calls the
servers, over `transport`, and is loaded with the first call: it needs the extra `mcp`.
"""
