// The effect on each block if a run continues with another definition: blocks that run come first.

import type { ReactElement } from 'react'
import type { BlockFate, Continuation } from '../../api/schemas'

const GROUPS: readonly [BlockFate['fate'] | 'branch', string][] = [
  ['again', 'Runs again'],
  ['new', 'Not run before'],
  ['maybe', 'Runs if its input changes'],
  ['branch', 'May run, its branch is decided again'],
  ['kept', 'Kept'],
  ['skipped', 'Not taken, as before'],
]

const groupOf = (block: BlockFate): BlockFate['fate'] | 'branch' =>
  block.fate === 'maybe' && block.why === 'branch' ? 'branch' : block.fate

export function Fates({ of }: { of: Continuation }): ReactElement {
  return (
    <dl className="readable" data-testid="fates">
      {GROUPS.map(([fate, title]) => {
        const blocks = of.blocks.filter((each) => groupOf(each) === fate)
        if (!blocks.length) return null
        return (
          <div key={fate}>
            <dt>{title}</dt>
            <dd>{blocks.map(described).join(', ')}</dd>
          </div>
        )
      })}
    </dl>
  )
}

function described(block: BlockFate): string {
  const notes = [
    block.effect === 'write' && block.fate !== 'kept' && block.fate !== 'skipped' ? 'reaches outside' : '',
    block.fate === 'again' && block.kept ? `${block.kept} kept` : '',
    block.calls ? `${block.calls} finished calls kept` : '',
  ].filter(Boolean)
  return (block.name || block.block) + (notes.length ? ` (${notes.join(', ')})` : '')
}
