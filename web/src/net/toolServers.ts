// MCP servers, asked before an agent uses them. Raises ApiError.

import type { OfferedTool, ToolServerAsked, ToolServerChecked } from '../api/schemas'
import { answer } from './answers'
import { flag, list, shape, text } from './check'
import { post } from './http'

const checked = answer<ToolServerChecked>({
  tools: list(shape<OfferedTool>({ name: text, description: text, reads: flag })),
})

/** The tools that the server offers, in its order. */
export const checkToolServer = async (asked: ToolServerAsked): Promise<OfferedTool[]> =>
  (await post('/api/mcp/check', asked, checked)).tools
