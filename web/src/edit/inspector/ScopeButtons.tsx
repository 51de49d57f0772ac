// Turns a container by one iteration or branch: the previous one, what stands between, the next one.

import type { ReactElement, ReactNode } from 'react'
import { setIter } from '../../state/ui'
import { Button } from '../../ui/Button'

export function ScopeButtons({
  container,
  index,
  scopes,
  word,
  children,
}: {
  container: string
  index: number
  /** By index; a gap has not started. */
  scopes: readonly unknown[]
  word: 'branch' | 'iteration'
  children?: ReactNode
}): ReactElement {
  const last = index >= scopes.length - 1
  const why = last ? `This is the last ${word}` : scopes[index + 1] ? null : `The next ${word} has not started`
  return (
    <>
      <Button
        kind="bare"
        icon="back"
        iconOnly
        why={index <= 0 ? `This is the first ${word}` : null}
        onClick={() => setIter(container, index - 1)}
      >{`Previous ${word}`}</Button>
      {children}
      <Button
        kind="bare"
        icon="chevron"
        iconOnly
        why={why}
        onClick={() => setIter(container, index + 1)}
      >{`Next ${word}`}</Button>
    </>
  )
}
