// The first half of the dialog for publishing: the change in one sentence, then what starts, what changes and what stops.

import type { ReactElement, ReactNode } from 'react'
import type { Json } from '../../api/schemas'
import { isSame, type DocumentDiff } from '../../document/diff'
import { Icon, type IconName } from '../../ui/icons'
import { fieldWords, wordsOf } from '../../ui/words'
import type { Active, Effect, Impact } from './impact'

const SHOWN = 6

export function ChangeSentence({ diff }: { diff: DocumentDiff | null }): ReactElement {
  const [change, ...more] = diff?.blocks ?? []
  const field = change?.fields[0]
  if (!diff) return <p className="publish__change">The first version.</p>
  if (isSame(diff)) return <p className="publish__change">Nothing changed in blocks, connections or settings.</p>
  if (change && field && !more.length && change.fields.length === 1 && !diff.edges.length && !diff.fields.length)
    return (
      <p className="publish__change">
        One value changed: <b>{change.name}</b>, {fieldWords(field.path, false).toLowerCase()}{' '}
        <Was value={field.before} /> <Now value={field.after} />
      </p>
    )
  return <p className="publish__change">{counted(diff)} changed.</p>
}

export function Columns({ impact, active }: { impact: Impact; active: Active | null }): ReactElement {
  const { starts, changes, stops } = impact
  const open = active?.openRuns ?? 0
  return (
    <div className="publish__columns">
      <Column title="Starts" icon="play" effects={starts} none="Nothing new" />
      <Column title="Changes" icon="edit" effects={changes ? changed(changes) : []} none="Nothing, it is new" />
      <Column title="Stops" icon="stop" effects={stops} none="Nothing">
        {open ? (
          <li>
            Nothing that is open
            <small>
              {open === 1 ? '1 open run keeps its version' : `${open} open runs keep their version`} until the end
            </small>
          </li>
        ) : null}
      </Column>
    </div>
  )
}

function Column({
  title,
  icon,
  effects,
  none,
  children,
}: {
  title: string
  icon: IconName
  effects: readonly Effect[]
  none: string
  children?: ReactNode
}): ReactElement {
  const rest = effects.length - SHOWN
  return (
    <section aria-label={title} data-testid={`publish-${title.toLowerCase()}`} data-column={title.toLowerCase()}>
      <h3>
        <Icon name={icon} size={14} />
        {title}
      </h3>
      <ul>
        {effects.slice(0, SHOWN).map(({ id, what, note, field }) => (
          <li key={id}>
            {what}
            <small>
              {note} {field ? <Was value={field.before} /> : null} {field ? <Now value={field.after} /> : null}
            </small>
          </li>
        ))}
        {rest > 0 ? <li className="quiet">{rest} more</li> : null}
        {children}
        {effects.length || children ? null : <li className="quiet">{none}</li>}
      </ul>
    </section>
  )
}

function changed(diff: DocumentDiff): Effect[] {
  const blocks = diff.blocks.map(({ id, name, how, fields }) => ({
    id,
    what: name,
    note:
      how === 'changed'
        ? [...new Set(fields.map(({ path }) => fieldWords(path, false).toLowerCase()))].slice(0, 3).join(', ')
        : how,
    ...(how === 'changed' && fields.length === 1 ? { field: fields[0]! } : {}),
  }))
  const added = diff.edges.filter(({ how }) => how === 'added').length
  const removed = diff.edges.length - added
  const edges = [added ? `${added} added` : '', removed ? `${removed} removed` : ''].filter(Boolean).join(', ')
  const own = diff.fields.map(({ path }) => path.split('.')[0]!)
  return [
    ...blocks,
    ...(edges ? [{ id: ' edges', what: 'Connections', note: edges }] : []),
    ...(own.length ? [{ id: ' own', what: 'Workflow', note: [...new Set(own)].map(wordsOf).join(', ') }] : []),
  ]
}

function counted(diff: DocumentDiff): string {
  const parts = [
    several(diff.blocks.length, 'block'),
    several(diff.edges.length, 'connection'),
    several(diff.fields.length, 'setting'),
  ].filter(Boolean)
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`
}

const several = (count: number, what: string): string => (count ? `${count} ${what}${count === 1 ? '' : 's'}` : '')

const Was = ({ value }: { value: Json | undefined }): ReactElement | null =>
  value === undefined ? null : <del>{brief(value)}</del>
const Now = ({ value }: { value: Json | undefined }): ReactElement =>
  value === undefined ? <>removed</> : <ins>{brief(value)}</ins>

function brief(value: Json): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
