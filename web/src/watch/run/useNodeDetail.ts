// Input and output of an attempt of a node, at the event that is shown. A node changes only with its own events, so answers are
// cached by the last of them.

import { useEffect, useState } from 'react'
import { api, ApiError } from '../../net/api'
import type { NodeDetail } from '../../api/types'
import type { NodeState } from '../../run'

export const PREVIEW_BYTES = 64 * 1024
const DETAILS_MAX = 60
const SETTLE_MS = 80
const AGAIN_MS = 3000

export interface Detailed {
  detail: NodeDetail | null
  loading: boolean
  error: string | null
}

const details = new Map<string, NodeDetail>()

/** `attempt` null: the last one. Nothing is asked while `run` or `node` is missing. */
export function useNodeDetail(run: string | null, node: NodeState | undefined, attempt: number | null): Detailed {
  const seq = node?.lastSeq
  const name = run && node ? JSON.stringify([run, node.key, seq, attempt]) : null
  const [state, setState] = useState<Detailed & { name: string | null }>({
    name: null,
    detail: null,
    loading: false,
    error: null,
  })
  useEffect(() => {
    if (!run || !node || name === null || details.has(name)) return
    const abort = new AbortController()
    const ask = (): void => {
      setState((before) => ({ ...before, name, loading: true, error: before.name === name ? before.error : null }))
      const where = {
        preview: PREVIEW_BYTES,
        ...(seq === undefined ? {} : { seq }),
        ...(attempt === null ? {} : { attempt }),
      }
      api.node(run, node.key, where, abort.signal).then(
        (detail) => {
          details.set(name, detail)
          if (details.size > DETAILS_MAX) details.delete(details.keys().next().value!)
          setState({ name, detail, loading: false, error: null })
        },
        (error: unknown) => {
          if (abort.signal.aborted) return
          const status = error instanceof ApiError ? error.status : 0
          const gone = status === 404 && (error as ApiError).code !== 'run_not_found'
          // Nothing else would ask again: a run that has ended does not change any more.
          if (status === 0 || status >= 500) timer = setTimeout(ask, AGAIN_MS)
          setState((before) => ({
            ...before,
            name,
            detail: null,
            loading: false,
            error: gone ? null : error instanceof Error ? error.message : String(error),
          }))
        },
      )
    }
    // While the Tape is dragged, nodes fly by; only where it rests is asked for.
    let timer = setTimeout(ask, SETTLE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [name])
  const known = name === null ? undefined : details.get(name)
  if (known) return { detail: known, loading: false, error: null }
  if (name === null) return { detail: null, loading: false, error: null }
  // Until the newer answer is there, the one of the same node a moment ago stays.
  return {
    detail: state.detail?.key === node?.key && attempt === null ? state.detail : null,
    loading: state.name !== name || state.loading,
    error: state.name === name ? state.error : null,
  }
}
