"""Tools of MCP servers, over streamable HTTP. `base` has the shapes, `client` what blocks call. `session` speaks to the
servers, over `transport`, and is loaded with the first call: it needs the extra `mcp`."""
