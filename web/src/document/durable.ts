// A document that is a durable function, in Python: its blocks and its code.

import type { Document, Listing } from '../api/types'

/** Its blocks, and its code if that is stored; null for another document. */
export function durableOf(doc: Document | null): { blocks: readonly string[]; listing: Listing | null } | null {
  if (!doc) return null
  const blocks = Object.keys(doc.blocks).filter((id) => doc.blocks[id]!.type === 'durable')
  const listing = blocks.map((id) => doc.blocks[id]!.source).find(Boolean) ?? null
  return blocks.length ? { blocks, listing } : null
}
