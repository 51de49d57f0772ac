// MCP servers, asked before an agent uses them. Raises ApiError.

import type { OfferedTool, ToolServerAsked } from '../api/schemas'
import * as is from '../api/checks'
import { answer } from './answers'
import { post } from './http'

/** The tools that the server offers, in its order. */
export const checkToolServer = async (asked: ToolServerAsked): Promise<OfferedTool[]> =>
  (await post('/api/mcp/check', asked, answer(is.ToolServerChecked))).tools
