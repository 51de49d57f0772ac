// The ways of the edges that are shown. Small documents have theirs at once; in large ones the search waits until the
// drag ends, and edges whose ends moved are drawn as plain lines until then.

import { useEffect, useState } from 'react'
import type { Document } from '../api/types'
import type { Specs } from '../document/document'
import { router, type Ways } from '../geometry/layout/routes'

/** Up to this many edges the search takes no longer than a frame. */
const AT_ONCE_MAX = 120
const STILL_MS = 120
const NONE: Ways = new Map()

export function useWays(doc: Document, specs: Specs): Ways {
  const [find] = useState(router)
  const [late, setLate] = useState<Ways>(NONE)
  const now = doc.edges.length <= AT_ONCE_MAX
  useEffect(() => {
    if (now) return
    const timer = setTimeout(() => setLate(find(doc, specs)), STILL_MS)
    return () => clearTimeout(timer)
  }, [now, find, doc, specs])
  return now ? find(doc, specs) : late
}
