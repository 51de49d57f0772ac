// What to do on an empty canvas. It comes later than the canvas itself, so what it calls is passed in.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { docStore } from '../state/doc'
import { Button } from '../ui/Button'
import { Link } from '../ui/navigation'

export default function FirstSteps({
  keys,
  onAdd,
}: {
  keys: string
  onAdd: (at: { x: number; y: number }) => void
}): ReactElement | null {
  const few = useStore(docStore, (s) => Object.keys(s.doc.blocks).length < 2)
  const readonly = useStore(docStore, (s) => s.readonly)
  if (!few || readonly) return null
  return (
    <div className="editor__start">
      <Button
        icon="plus"
        keys={keys}
        onClick={(event) => {
          const { right, top } = event.currentTarget.parentElement!.getBoundingClientRect()
          onAdd({ x: right + 12, y: top })
        }}
      >
        Add a block
      </Button>
      <p>What happens first? It follows the block above.</p>
      <p className="quiet">
        Or drop a JSON file here, or <Link to="/">open an example</Link>.
      </p>
    </div>
  )
}
