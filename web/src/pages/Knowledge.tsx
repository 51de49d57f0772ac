// Collections of documents that workflows and agents search: all of them, or one with its documents.

import { useState, type ReactElement } from 'react'
import type { CollectionView } from '../api/schemas'
import TopBar from '../edit/shell/TopBar'
import { knowledge } from '../net/knowledge'
import { Ago } from '../ui/Ago'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Link, navigate } from '../ui/navigation'
import { useReadOnly } from '../ui/rights'
import { Collection } from './knowledge/Collection'
import { CreateDialog } from './knowledge/dialogs'
import { addressOf, charsText, countText, State } from './knowledge/words'
import { ListState, Stale, usePolled } from './parts'
import { Table, type Column } from './settings/ListPage'
import './pages.css'
import './settings.css'
import './settings/pages.css'
import './knowledge/knowledge.css'

const COLUMNS: Column<CollectionView>[] = [
  {
    name: 'Collection',
    cell: ({ name, description }) => (
      <>
        <Link to={addressOf(name)} className="know__name">
          {name}
        </Link>
        {description ? <span className="know__about">{description}</span> : null}
      </>
    ),
  },
  { name: 'Model', cell: ({ model }) => <code>{model}</code> },
  { name: 'Documents', cell: ({ documents }) => documents.toLocaleString('en') },
  {
    name: 'Size',
    cell: ({ chunks, chars }) => (chunks ? `${countText(chunks, 'chunk')}, ${charsText(chars)}` : 'Nothing yet'),
  },
  { name: 'State', cell: (collection) => <CollectionState of={collection} /> },
  { name: 'Created', cell: ({ created_at_ms: at }) => <Ago at={at} /> },
]

export default function Knowledge({ id }: { id: string }): ReactElement {
  return (
    <div className="screen">
      <TopBar />
      <main className="page know">{id ? <Collection name={id} /> : <Collections />}</main>
    </div>
  )
}

function Collections(): ReactElement {
  const stored = usePolled(knowledge.list, [])
  const [creating, setCreating] = useState(false)
  const why = useReadOnly()
  const rows = stored.value ?? []
  const create = (
    <Button kind="primary" icon="plus" why={why} onClick={() => setCreating(true)}>
      New collection
    </Button>
  )
  return (
    <section aria-labelledby="know-all">
      <div className="settings__head">
        <h1 id="know-all">Knowledge</h1>
        {rows.length ? create : null}
      </div>
      <p className="quiet know__intro">Documents that workflows and agents search, by meaning and by words.</p>
      <Stale data={stored} />
      {rows.length ? (
        <Table
          label="Collections"
          widths="know__row"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ name }) => name}
          testIdOf={({ name }) => `collection-${name}`}
        />
      ) : (
        <ListState data={stored} empty>
          <EmptyState icon="knowledge" title="There is no collection">
            <p>A collection has the documents of one subject, such as a handbook.</p>
            {create}
          </EmptyState>
        </ListState>
      )}
      {creating ? (
        <CreateDialog
          names={rows.map((each) => each.name)}
          onDone={(made) => navigate(addressOf(made.name))}
          onClose={() => setCreating(false)}
        />
      ) : null}
    </section>
  )
}

function CollectionState({ of: { documents, pending, failed } }: { of: CollectionView }): ReactElement {
  return (
    <span className="know__states">
      {failed ? <State tone="err">{failed} failed</State> : null}
      {pending ? <State tone="run">{pending} pending</State> : null}
      {failed || pending ? null : documents ? <State tone="ok">Ready</State> : <State tone="quiet">Empty</State>}
    </span>
  )
}
