// Publishing: the draft becomes a version, which does not change.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api, ApiError } from '../../net/api'
import { isTrigger, type Specs } from '../../document/document'
import type { Diagnostic, DraftVersion } from '../../api/schemas'
import type { Document } from '../../api/types'
import { docStore, flush, specsOf } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'

export default function PublishDialog(): ReactElement {
  const name = useStore(docStore, (s) => s.doc.name ?? '')
  const [typed, setTyped] = useState<string | null>(null)
  const [problems, setProblems] = useState<{ text: string; list: readonly Diagnostic[] } | null>(null)
  const [busy, setBusy] = useState(false)
  const [activates, setActivates] = useState(false)
  const triggersOff = useStore(docStore, (s) => isIncomplete(s.diagnostics) && startsByItself(s.doc, specsOf()))
  const close = (): void => uiStore.setState({ overlay: null })
  const save = async (): Promise<void> => {
    setBusy(true)
    try {
      await flush()
      const { id, rev } = docStore.getState()
      if (id === null) return
      const saved = await api.saveDraftVersion(id, rev, typed?.trim() || name, triggersOff && activates)
      if (docStore.getState().id === id)
        docStore.setState({ baseVersion: saved.version, baseName: saved.name, baseRev: saved.rev })
      const off = saved.diagnostics.find((found) => found.code === 'triggers_off')
      if (off) toast(`${savedText(saved)} ${off.message} Settings has a switch for each.`, 'err')
      else toast(savedText(saved), 'ok')
      close()
    } catch (error) {
      const list = error instanceof ApiError ? error.diagnostics.filter((found) => found.severity === 'error') : []
      setProblems({ text: error instanceof Error ? error.message : String(error), list })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog
      title="Publish version"
      open
      onClose={close}
      foot={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            data-testid="save-version"
            why={busy ? 'Publishing' : null}
            onClick={() => void save()}
          >
            Publish
          </Button>
        </>
      }
    >
      <form
        className="dialogform"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <label>
          <span className="label">Workflow name</span>
          <input
            type="text"
            value={typed ?? name}
            onChange={(event) => setTyped(event.target.value)}
            autoFocus
            spellCheck={false}
          />
        </label>
        <p className="quiet">
          A published version cannot be changed. Webhooks, schedules and API calls use it from now on. You can keep
          editing the draft.
        </p>
        {triggersOff ? (
          <div className="notice" data-tone="wait" data-testid="triggers-off">
            <p>Not all blocks and tools were imported, so new triggers stay off.</p>
            <label className="checkline">
              <input
                type="checkbox"
                data-testid="activate-triggers"
                checked={activates}
                onChange={(event) => setActivates(event.target.checked)}
              />{' '}
              Activate the triggers
            </label>
            {activates ? <p>Runs that they start fail when they reach a block that was not imported.</p> : null}
          </div>
        ) : null}
        {problems ? (
          <div role="alert" className="dialogform__refused">
            <p>{problems.text}</p>
            <ul>
              {problems.list.slice(0, 8).map((found, i) => (
                <li key={i}>{found.message}</li>
              ))}
            </ul>
          </div>
        ) : null}
      </form>
    </Dialog>
  )
}

const isIncomplete = (found: readonly Diagnostic[]): boolean => found.some((each) => each.code === 'not_imported')

/** Whether it has a schedule, webhook, form or chat. */
const startsByItself = (doc: Document, specs: Specs): boolean =>
  Object.values(doc.blocks).some(
    (block) => isTrigger(block, specs) && block.type !== 'start' && block.enabled !== false,
  )

function savedText({ name, version, created, activated, replaced }: DraftVersion): string {
  if (created) return `Published version ${version} of ${name}.`
  if (!activated) return `No changes: version ${version} of ${name} is active.`
  return replaced === null
    ? `Version ${version} of ${name} is active again.`
    : `Version ${version} of ${name} is active again instead of version ${replaced}.`
}
