// Documents written by a program or by hand may have no positions of blocks.

import type { Document } from '../net/types'
import { applyCommand } from './commands'
import { NO_SPECS, type Specs } from '../document/document'
import { layout } from '../geometry/layout'

/** The document itself when any block has a place; else one that is tidied, so that no two blocks stand upon each other. */
export function placed(doc: Document, specs: Specs = NO_SPECS): Document {
  const blocks = Object.values(doc.blocks)
  if (blocks.length < 2 || blocks.some((block) => block.at)) return doc
  return applyCommand(doc, layout(doc, specs), specs)[0]
}
