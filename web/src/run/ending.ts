// How attempts end. Apart from the other questions: only parts that load later ask it.

import type { ErrorInfo } from '../api/types'

const INTERRUPTED = ['attempt_lost', 'run_forked']

/** The ending of an attempt. One that was lost with its process, or stayed in the run that this one was forked from, has not
 * failed. */
export const endingOf = (
  ended: boolean,
  error: ErrorInfo | null,
): 'running' | 'succeeded' | 'failed' | 'interrupted' =>
  error ? (INTERRUPTED.includes(error.code) ? 'interrupted' : 'failed') : ended ? 'succeeded' : 'running'
