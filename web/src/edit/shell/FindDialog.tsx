// Find a text in names and settings of all blocks, and replace it in settings: one undo step.

import { useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { goTo } from '../../canvas/walk'
import { mapTexts, texts } from '../../refs/parse'
import type { Command } from '../../state/commands'
import { dispatch, docStore, specsOf } from '../../state/doc'
import { nameOf, readingOrder } from '../../document/document'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon, iconOf } from '../../ui/icons'
import { toast } from '../../ui/Toast'

interface Hit {
  block: string
  where: string
  text: string
  at: number
}

const HITS_MAX = 200

export default function FindDialog(): ReactElement | null {
  const open = useStore(uiStore, (s) => s.overlay === 'find')
  const doc = useStore(docStore, (s) => s.doc)
  const readonly = useStore(docStore, (s) => s.readonly)
  const [query, setQuery] = useState('')
  const [replacement, setReplacement] = useState('')
  const [removes, setRemoves] = useState(false)
  const hits = useMemo(() => (open ? find(query) : []), [open, query, doc])
  const close = (): void => uiStore.setState({ overlay: null })
  const inSettings = hits.filter((hit) => hit.where !== 'name').length
  return (
    <Dialog
      title="Find and replace"
      open={open}
      wide
      onClose={close}
      foot={
        <Button
          why={
            readonly
              ? 'This window is too small to edit.'
              : !inSettings
                ? 'Nothing to replace'
                : !replacement && !removes
                  ? 'Enter a replacement, or select “Delete matches”'
                  : null
          }
          data-testid="replace-all"
          onClick={() => replaceAll(query, replacement)}
        >
          {replacement || !removes ? 'Replace' : 'Delete'} {inSettings || 'all'}
        </Button>
      }
    >
      <div className="findbar">
        <label>
          <span className="label">Find</span>
          <input
            type="search"
            value={query}
            autoFocus
            spellCheck={false}
            onChange={(event) => setQuery(event.target.value)}
          />
        </label>
        <label>
          <span className="label">Replace with</span>
          <input
            type="text"
            value={replacement}
            spellCheck={false}
            onChange={(event) => setReplacement(event.target.value)}
          />
        </label>
        {replacement ? null : (
          <label className="checkline">
            <input type="checkbox" checked={removes} onChange={(event) => setRemoves(event.target.checked)} /> Delete
            matches
          </label>
        )}
      </div>
      <ul className="findbar__hits" aria-label="Results">
        {hits.slice(0, HITS_MAX).map((hit, i) => (
          <li key={i}>
            <button
              type="button"
              onClick={() => {
                close()
                goTo(docStore.getState().doc, specsOf(), hit.block)
              }}
            >
              <Icon name={iconOf(doc.blocks[hit.block]?.type ?? '')} />
              <b>{nameOf(doc, hit.block)}</b>
              <span className="label">{hit.where}</span>
              <code>{around(hit, query.length)}</code>
            </button>
          </li>
        ))}
      </ul>
      {query && !hits.length ? <p className="quiet">No results</p> : null}
    </Dialog>
  )
}

function find(query: string): Hit[] {
  const wanted = query.toLowerCase()
  if (!wanted) return []
  const { doc } = docStore.getState()
  const hits: Hit[] = []
  for (const block of readingOrder(doc)) {
    const name = nameOf(doc, block)
    if (name.toLowerCase().includes(wanted))
      hits.push({ block, where: 'name', text: name, at: name.toLowerCase().indexOf(wanted) })
    for (const [pointer, text] of texts(doc.blocks[block]!.params)) {
      const at = text.toLowerCase().indexOf(wanted)
      if (at >= 0) hits.push({ block, where: pointer.slice(1).replaceAll('/', '.'), text, at })
    }
  }
  return hits
}

function replaceAll(query: string, replacement: string): void {
  const { doc } = docStore.getState()
  const pattern = new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi')
  const commands: Command[] = []
  for (const [id, block] of Object.entries(doc.blocks)) {
    const params = mapTexts(block.params, (text) => text.replace(pattern, () => replacement))
    if (params !== block.params && params) commands.push({ type: 'setParams', id, params })
  }
  if (commands.length && dispatch({ type: 'batch', label: `replace “${query}”`, commands }))
    toast(`Replaced in ${commands.length === 1 ? '1 block' : `${commands.length} blocks`}.`, 'ok')
}

function around({ text, at }: Hit, length: number): string {
  const from = Math.max(0, at - 24)
  return `${from ? '…' : ''}${text.slice(from, at + length + 40).replace(/\s+/g, ' ')}${text.length > at + length + 40 ? '…' : ''}`
}
