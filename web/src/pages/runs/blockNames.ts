// The names of the blocks at which runs failed, from the documents that they ran.

import { useEffect, useState } from 'react'
import type { RunSummary } from '../../api/schemas'
import { nameOf } from '../../document/document'
import { api } from '../../net/api'

/** Documents that are read for one page of the list, and kept. */
const DOCUMENTS_MAX = 50

type Names = (block: string) => string

/** By what a run ran: the same for all runs of a version. What could not be read is null, and its blocks have their ids. */
const readNames = new Map<string, Names | null>()

const keyOf = (run: RunSummary): string =>
  run.version === null
    ? `${run.workflow} ${run.draft_id ?? run.id} ${run.draft_rev}`
    : `${run.workflow} v${run.version}`

/** The function from a run and a block of it to the name of the block; its id until that is known. */
export function useBlockNames(runs: readonly RunSummary[]): (run: RunSummary, block: string) => string {
  const [, setRead] = useState(0)
  const named = new Map(runs.filter((run) => run.error?.block || run.step).map((run) => [keyOf(run), run.id]))
  const wanted = [...named].filter(([key]) => !readNames.has(key)).slice(0, DOCUMENTS_MAX)
  const asked = wanted.map(([key]) => key).join('\n')
  useEffect(() => {
    for (const [key, id] of wanted) {
      readNames.set(key, null)
      api.runDocument(id).then(
        (doc) => {
          if (doc) readNames.set(key, (block) => nameOf(doc, block))
          setRead((n) => n + 1)
        },
        () => readNames.delete(key), // asked again with the next list
      )
    }
    while (readNames.size > DOCUMENTS_MAX * 2) readNames.delete(readNames.keys().next().value!)
  }, [asked])
  return (run, block) => readNames.get(keyOf(run))?.(block) ?? block
}
