// One collection: its search, and its documents with their versions. Files are added by a button, or dropped anywhere.

import { useRef, useState, type ReactElement } from 'react'
import type { DocumentView } from '../../api/schemas'
import { documentOf, knowledge } from '../../net/knowledge'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon } from '../../ui/icons'
import { Link, navigate } from '../../ui/navigation'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf, whoOf } from '../../ui/words'
import { useDrop } from '../drop'
import { ListState, Stale, Unavailable, usePolled } from '../parts'
import { DeleteDialog } from '../settings/DeleteDialog'
import { ACTIONS, Table, type Column } from '../settings/ListPage'
import { TextDialog } from './dialogs'
import { Search } from './Search'
import { charsText, countText, Source, State } from './words'

const ACCEPTED = '.txt,.md,.markdown,.html,.htm,.csv,.json,.pdf,text/*'
/** Ask again after so many ms: while a document is embedded, and otherwise. */
const SOON = 1_500
const LATER = 10_000

type Shown = { act: 'text' } | { act: 'delete' } | { act: 'remove'; document: string }
interface Named {
  name: string
  versions: DocumentView[]
}

export function Collection({ name }: { name: string }): ReactElement {
  const [pages, setPages] = useState(1)
  const [pending, setPending] = useState(false)
  const stored = usePolled(
    async () => {
      const [head, documents] = await Promise.all([knowledge.get(name), firstDocuments(name, pages)])
      setPending(documents.found.some((each) => each.state === 'pending'))
      return { head, ...documents }
    },
    [name, pages],
    pending ? SOON : LATER,
  )
  const [shown, setShown] = useState<Shown | null>(null)
  const why = useReadOnly()
  const files = useRef<HTMLInputElement>(null)
  const { take, adding, wrong, dismiss } = useAdding(name, stored.reload)
  const dropping = useDrop((dropped) => (why ? toast(why, 'err') : void take(dropped)))
  const head = stored.value?.head
  const rows = byName(stored.value?.found ?? [])
  if (!head) {
    return (
      <>
        <Back />
        {stored.error ? (
          <Unavailable error={stored.error} onRetry={stored.reload} />
        ) : (
          <ListState data={stored} empty={false}>
            {null}
          </ListState>
        )}
      </>
    )
  }
  const add = (
    <span className="know__adds">
      <Button kind="primary" icon="upload" why={why ?? adding} onClick={() => files.current?.click()}>
        Add files
      </Button>
      <Button icon="plus" why={why} onClick={() => setShown({ act: 'text' })}>
        Add text
      </Button>
    </span>
  )
  return (
    <>
      <Back />
      <input
        ref={files}
        type="file"
        accept={ACCEPTED}
        multiple
        hidden
        data-testid="knowledge-files"
        onChange={(event) => {
          void take([...(event.target.files ?? [])])
          event.target.value = ''
        }}
      />
      <div className="settings__head">
        <h1>{head.name}</h1>
        <Button kind="bare" icon="trash" why={why} onClick={() => setShown({ act: 'delete' })}>
          Delete collection
        </Button>
      </div>
      {head.description ? <p className="know__intro">{head.description}</p> : null}
      <p className="quiet know__intro">
        <code>{head.model}</code>, chunks of {head.chunk_chars.toLocaleString('en')} characters with an overlap of{' '}
        {head.overlap_chars.toLocaleString('en')}.
        {head.documents
          ? ` ${countText(head.documents, 'document')}, ${countText(head.chunks, 'chunk')}, ${charsText(head.chars)}.`
          : ''}
      </p>
      <Stale data={stored} />
      {head.documents ? <Search collection={name} /> : null}
      <section aria-labelledby="know-documents" data-testid="documents">
        <div className="settings__head">
          <h2 id="know-documents">Documents</h2>
          {rows.length ? add : null}
        </div>
        {adding ? (
          <p className="notice" role="status">
            {adding}
          </p>
        ) : null}
        {wrong.length ? (
          <div className="notice" data-tone="err" role="alert">
            <ul>
              {wrong.map((each) => (
                <li key={each}>{each}</li>
              ))}
            </ul>
            <Button kind="bare" onClick={dismiss}>
              Dismiss
            </Button>
          </div>
        ) : null}
        {rows.length ? (
          <Table
            label="Documents"
            widths="know__documents"
            columns={columnsOf(why, (document) => setShown({ act: 'remove', document }))}
            rows={rows}
            keyOf={(row) => row.name}
            testIdOf={(row) => `document-${row.name}`}
          />
        ) : (
          <EmptyState icon="knowledge" title="There is no document">
            <p>Drop files here: plain text, Markdown, HTML, CSV, JSON or PDF, of at most 16 MiB.</p>
            {add}
          </EmptyState>
        )}
        {stored.value?.more ? (
          <p className="know__more">
            <Button why={stored.loading ? 'Loading' : null} onClick={() => setPages(pages + 1)}>
              More documents
            </Button>
          </p>
        ) : null}
      </section>
      {dropping ? (
        <div className="dropping" aria-hidden="true">
          <p>Drop to add to {head.name}</p>
        </div>
      ) : null}
      {shown?.act === 'text' ? (
        <TextDialog collection={name} onDone={stored.reload} onClose={() => setShown(null)} />
      ) : null}
      {shown?.act === 'remove' ? (
        <DeleteDialog
          what={`the document ${shown.document}`}
          act={() => knowledge.remove(name, shown.document)}
          onDone={stored.reload}
          onClose={() => setShown(null)}
        >
          <p>Its text, its vectors and its words are deleted, of all versions. Searches no longer find it.</p>
        </DeleteDialog>
      ) : null}
      {shown?.act === 'delete' ? (
        <DeleteDialog
          what={`the collection ${head.name}`}
          act={() => knowledge.delete(name)}
          onDone={() => navigate('/knowledge')}
          onClose={() => setShown(null)}
        >
          <p>
            {head.documents
              ? `${countText(head.documents, 'document')} and their vectors are deleted.`
              : 'It is empty.'}{' '}
            Blocks and tools that name it fail from now on.
          </p>
        </DeleteDialog>
      ) : null}
    </>
  )
}

const Back = (): ReactElement => (
  <Link className="know__back" to="/knowledge">
    <Icon name="back" size={14} /> Knowledge
  </Link>
)

function columnsOf(why: string | null, remove: (document: string) => void): Column<Named>[] {
  const newest = ({ versions }: Named): DocumentView => versions.at(-1)!
  return [
    {
      name: 'Document',
      cell: (row) => (
        <>
          <b>{row.name}</b>
          {newest(row).title && newest(row).title !== row.name ? (
            <span className="know__about">{newest(row).title}</span>
          ) : null}
          <Source of={newest(row).source} />
        </>
      ),
    },
    {
      name: 'State',
      cell: ({ versions }) => (
        <span className="know__states">
          {versions.map((each) => (
            <Version key={each.version} of={each} />
          ))}
        </span>
      ),
    },
    { name: 'Size', cell: (row) => `${countText(newest(row).chunks, 'chunk')}, ${charsText(newest(row).chars)}` },
    {
      name: 'Added',
      cell: (row) => (
        <>
          <Ago at={newest(row).added_at_ms} />
          {newest(row).added_by ? <span className="know__about">by {whoOf(newest(row).added_by!)}</span> : null}
        </>
      ),
    },
    {
      name: ACTIONS,
      cell: ({ name }) => (
        <Button kind="bare" icon="trash" iconOnly why={why} onClick={() => remove(name)}>
          {`Delete ${name}`}
        </Button>
      ),
    },
  ]
}

/** The state of one version, with the run that embeds it. */
function Version({ of: { version, state, embedded, chunks, run } }: { of: DocumentView }): ReactElement {
  const words = {
    visible: <State tone="ok">v{version} ready</State>,
    pending: (
      <State tone="run">
        v{version}: {embedded} of {chunks} embedded
      </State>
    ),
    failed: <State tone="err">v{version} failed</State>,
  }
  return (
    <span className="know__version">
      {words[state]}
      <Link to={`/runs/${encodeURIComponent(run)}`}>{state === 'failed' ? 'See why' : 'Run'}</Link>
    </span>
  )
}

const byName = (found: readonly DocumentView[]): Named[] => {
  const rows = new Map<string, Named>()
  for (const each of found) {
    const row = rows.get(each.name)
    if (row) row.versions.push(each)
    else rows.set(each.name, { name: each.name, versions: [each] })
  }
  return [...rows.values()]
}

/** The first pages of documents as one. All are requested each time: states on the last ones change as well. */
async function firstDocuments(name: string, pages: number): Promise<{ found: DocumentView[]; more: boolean }> {
  const found: DocumentView[] = []
  let next: string | null = ''
  for (let n = 0; n < pages && next !== null; n++) {
    const page = await knowledge.documents(name, next)
    found.push(...page.documents)
    next = page.next
  }
  return { found, more: next !== null }
}

/** Adds files in order. `wrong`: of those that were refused. */
function useAdding(
  name: string,
  onAdded: () => void,
): {
  take: (files: readonly File[]) => Promise<void>
  adding: string | null
  wrong: readonly string[]
  dismiss: () => void
} {
  const [adding, setAdding] = useState<string | null>(null)
  const [wrong, setWrong] = useState<readonly string[]>([])
  const take = async (files: readonly File[]): Promise<void> => {
    const refused: string[] = []
    for (const [n, file] of files.entries()) {
      setAdding(files.length === 1 ? `Adding ${file.name}` : `Adding ${file.name}, ${n + 1} of ${files.length}`)
      try {
        await knowledge.add(name, await documentOf(file))
      } catch (error) {
        refused.push(`${file.name}: ${messageOf(error)}`)
      }
      onAdded()
    }
    setAdding(null)
    setWrong(refused)
  }
  return { take, adding, wrong, dismiss: () => setWrong([]) }
}
