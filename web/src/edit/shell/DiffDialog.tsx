// What is different between two versions, or between a version and the draft.

import { useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { goTo } from '../../canvas/walk'
import { api } from '../../net/api'
import type { Json, VersionRow } from '../../api/schemas'
import type { Document } from '../../api/types'
import { docStore, specsOf } from '../../state/doc'
import { diffDocuments, isSame, type BlockChange, type DocumentDiff, type FieldChange } from '../../document/diff'
import { nameOf, routeTitle } from '../../document/document'
import { uiStore } from '../../state/ui'
import { Dialog } from '../../ui/Dialog'
import { Icon, iconOf, type IconName } from '../../ui/icons'
import { useData } from '../../ui/useData'
import { fieldWords } from '../../ui/words'
import './diff.css'

type Side = number | 'draft'
const LISTED = 100

export default function DiffDialog(): ReactElement | null {
  const open = useStore(uiStore, (s) => s.overlay === 'diff')
  return open ? <Opened /> : null
}

function Opened(): ReactElement {
  const name = useStore(docStore, (s) => s.baseName ?? s.doc.name ?? '')
  const base = useStore(docStore, (s) => s.baseVersion)
  const draft = useStore(docStore, (s) => s.doc)
  // Of a workflow that was never published there is nothing to ask for.
  const stored = useData(async () => (base === null ? null : await api.versions(name, LISTED)), [name, base])
  const unchanged = useStore(docStore, (s) => s.rev === s.baseRev)
  const [left, setLeft] = useState<Side | null>(null)
  const [right, setRight] = useState<Side>('draft')
  // A draft without changes shows what its version changed.
  const from: Side = left ?? (base === null ? 'draft' : unchanged && base > 1 ? base - 1 : base)
  const versions: readonly Pick<VersionRow, 'version'>[] =
    stored.value?.versions ?? (from === 'draft' ? [] : [{ version: from }])
  const load = async (side: Side): Promise<Document> =>
    side === 'draft' ? docStore.getState().doc : (await api.workflow(name, side)).document
  const sides = useData(
    async () => (await Promise.all([load(from), load(right)])) as [Document, Document],
    [name, from, right, draft],
  )
  const diff = useMemo(() => (sides.value ? diffDocuments(...sides.value) : null), [sides.value])
  const choice = (label: string, value: Side, onChange: (side: Side) => void): ReactElement => (
    <label className="diff__side">
      <span className="label">{label}</span>
      <select
        value={String(value)}
        onChange={(event) => onChange(event.target.value === 'draft' ? 'draft' : Number(event.target.value))}
      >
        <option value="draft">Draft</option>
        {versions.map(({ version }) => (
          <option key={version} value={version}>
            {`Version ${version}${version === stored.value?.active ? ' (live)' : ''}`}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <Dialog title="Compare versions" open wide onClose={() => uiStore.setState({ overlay: null })}>
      <div className="diff" data-testid="diff">
        <div className="diff__sides">
          {choice('From', from, setLeft)}
          {choice('To', right, setRight)}
        </div>
        {sides.error ? (
          <p className="notice" data-tone="err" role="alert">
            {sides.error.message}
          </p>
        ) : null}
        {base === null ? (
          <p className="quiet">This workflow is not published yet. Publish a version to compare the draft with it.</p>
        ) : null}
        {base === null ? null : diff && sides.value ? (
          <Changes diff={diff} before={sides.value[0]} after={sides.value[1]} onDraft={right === 'draft'} />
        ) : sides.error ? null : (
          <p className="quiet" role="status">
            Loading
          </p>
        )}
      </div>
    </Dialog>
  )
}

function Changes({
  diff,
  before,
  after,
  onDraft,
}: {
  diff: DocumentDiff
  before: Document
  after: Document
  onDraft: boolean
}): ReactElement {
  const moved = diff.moved.length ? (
    <p className="quiet">
      {diff.moved.length === 1 ? '1 block was' : `${diff.moved.length} blocks were`} moved on the canvas.
    </p>
  ) : null
  if (isSame(diff))
    return (
      <>
        <p>No differences in blocks, connections or settings.</p>
        {moved}
      </>
    )
  return (
    <>
      <ul className="diff__list" aria-label="Blocks">
        {diff.blocks.map((change) => (
          <BlockRow key={change.id} change={change} canGo={onDraft && change.how !== 'removed'} />
        ))}
      </ul>
      {diff.fields.length ? (
        <>
          <h3 className="label">Workflow</h3>
          <Fields fields={diff.fields} />
        </>
      ) : null}
      {diff.edges.length ? (
        <>
          <h3 className="label">Connections</h3>
          <ul className="diff__list">
            {diff.edges.map((edge) => {
              const doc = edge.how === 'added' ? after : before
              return (
                <li key={`${edge.how} ${edge.source} ${edge.handle} ${edge.target}`} data-how={edge.how}>
                  <How how={edge.how} />
                  {nameOf(doc, edge.source)}
                  <span className="quiet">
                    {edge.handle === 'out' ? ' to ' : ` (${routeTitle(doc, edge.source, edge.handle, specsOf())}) to `}
                  </span>
                  {nameOf(doc, edge.target)}
                </li>
              )
            })}
          </ul>
        </>
      ) : null}
      {moved}
    </>
  )
}

const HOW: Record<BlockChange['how'], { word: string; icon: IconName }> = {
  added: { word: 'Added', icon: 'plus' },
  removed: { word: 'Removed', icon: 'trash' },
  changed: { word: 'Changed', icon: 'edit' },
}

function How({ how }: { how: BlockChange['how'] }): ReactElement {
  return (
    <span className="diff__how" data-how={how}>
      <Icon name={HOW[how].icon} size={14} />
      {HOW[how].word}
    </span>
  )
}

function BlockRow({ change, canGo }: { change: BlockChange; canGo: boolean }): ReactElement {
  const go = (): void => {
    uiStore.setState({ overlay: null, view: 'canvas' })
    goTo(docStore.getState().doc, specsOf(), change.id)
  }
  return (
    <li data-how={change.how} data-testid={`diff-${change.id}`}>
      <How how={change.how} />
      <Icon name={iconOf(change.type)} size={14} />
      {canGo ? (
        <button type="button" className="diff__name" onClick={go}>
          {change.name}
        </button>
      ) : (
        <b>{change.name}</b>
      )}
      {change.fields.length ? <Fields fields={change.fields} /> : null}
    </li>
  )
}

function Fields({ fields }: { fields: readonly FieldChange[] }): ReactElement {
  return (
    <dl className="diff__fields">
      {fields.map(({ path, before, after }) => (
        <div key={path}>
          <dt title={path}>{fieldWords(path)}</dt>
          <dd>
            {before === undefined ? null : <del>{shown(before)}</del>}
            {after === undefined ? null : <ins>{shown(after)}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

const SHOWN_MAX = 400

function shown(value: Json): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text
}
