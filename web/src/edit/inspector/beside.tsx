// The inspector, loaded beside the page instead of before it: the canvas does not wait for the forms of all kinds of fields.

import { lazy, Suspense, type ReactElement } from 'react'

const load = () => import('./Inspector')
const Loaded = lazy(load)
// Begins now: who selects a block finds it there. If it fails, showing it tries again, and says so.
load().catch(() => undefined)

export default function Inspector(props: { mode: 'edit' | 'run' }): ReactElement {
  return (
    <Suspense fallback={null}>
      <Loaded {...props} />
    </Suspense>
  )
}
