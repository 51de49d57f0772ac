// The grid of workflows and drafts: which are shown, in which order, and what their menus do.

import { useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import type { BlockSpec, Card, Document, DraftSummary } from '../../api/types'
import { formSchema, triggersOf } from '../../document/triggers'
import { docStore, specsOf } from '../../state/doc'
import { loadTitles } from '../../state/titles'
import { uiStore } from '../../state/ui'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { MenuButton, type MenuEntry } from '../../ui/Menu'
import { navigate } from '../../ui/navigation'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf, whoOf } from '../../ui/words'
import { DeleteDialog } from '../settings/DeleteDialog'
import { download } from '../importing'
import { Tile } from './Tile'
import { pillOf, sentenceOf, startOf } from './words'

type Specs = ReadonlyMap<string, BlockSpec>

interface ItemProps {
  specs: Specs
  /** The reason why nothing can be changed. */
  why: string | null
  onChange: () => void
}

const failed = (error: unknown): void => void toast(messageOf(error), 'err')

/** A published workflow. `draft`: the one that is based on it, which a click opens. */
export function WorkflowTile({
  card,
  draft,
  folders,
  byChange,
  now,
  specs,
  why,
  onChange,
}: ItemProps & {
  card: Card
  draft: DraftSummary | undefined
  folders: readonly string[]
  /** They are in the order of their changes: who made the last one takes the place of the next start. */
  byChange: boolean
  now: number
}): ReactElement {
  const [asks, setAsks] = useState<'name' | 'folder' | 'delete' | null>(null)
  const { name, document } = card
  const shown = card.title || name
  const edited = draft !== undefined && draft.base_rev !== draft.rev
  const open = async (then?: () => void): Promise<void> => {
    try {
      const id = draft?.id ?? (await api.createDraft({ ...document, name }, name, card.version)).id
      navigate(`/w/${id}`)
      if (then) onceOpen(id, then)
    } catch (error) {
      failed(error)
    }
  }
  const run = async (): Promise<void> => {
    const [trigger, ...others] = triggersOf(document, specsOf())
    const asksInput =
      !trigger || others.length || ['webhook', 'chat_trigger'].includes(document.blocks[trigger.id]!.type)
    if (asksInput || Object.keys(formSchema(document, trigger.id).properties ?? {}).length) return open(ask)
    try {
      navigate(`/runs/${(await api.startRun(name, {})).run}`)
    } catch (error) {
      failed(error)
    }
  }
  const entries: MenuEntry[] = [
    {
      label: why === null ? 'Open' : 'Runs',
      icon: why === null ? 'edit' : 'play',
      onSelect: () => (why === null ? void open() : navigate(runsOf(name))),
    }, // prettier-ignore
    { label: 'Rename', icon: 'edit', why, changes: true, onSelect: () => setAsks('name') },
    { label: 'Move to folder', icon: 'file', why, changes: true, onSelect: () => setAsks('folder') },
    {
      label: 'Make a copy',
      icon: 'copy',
      why,
      changes: true,
      onSelect: () =>
        void api.createDraft({ ...document, name: `${name}-copy` }, `${name}-copy`).then(onChange, failed),
    },
    { label: 'Download JSON', icon: 'download', onSelect: () => download(name, document) },
    'line',
    { label: 'Delete', icon: 'trash', why, changes: true, onSelect: () => setAsks('delete') },
  ]
  const who = (
    <>
      {card.changed_by ? whoOf(card.changed_by) : 'Changed'}, <Ago at={card.activated_at_ms} />
    </>
  )
  const [icon, start] = startOf(card, document, now)
  return (
    <>
      <Tile
        name={shown}
        to={draft ? `/w/${draft.id}` : why === null ? () => void open() : runsOf(name)}
        doc={document}
        specs={specs}
        states={card.states}
        pill={pillOf(card)}
        run={card.last_run?.id}
        about={edited ? `Edited since version ${card.version}. ${sentenceOf(document)}` : sentenceOf(document)}
        start={byChange ? ['edit', who] : [icon, start]}
        runs={card.runs}
        list={runsOf(name)}
        actions={
          <>
            <Button kind="primary" icon="play" changes why={why} aria-label={`Run ${shown}`} onClick={() => void run()}>
              Run
            </Button>
            <More name={shown} entries={entries} />
          </>
        }
      />
      {asks === 'name' ? (
        <TextDialog
          title={`Rename ${shown}`}
          label="Name"
          hint={`Links, webhooks, schedules, runs and calls keep the name ${name}. It is found by both.`}
          first={shown}
          max={200}
          button="Rename"
          send={(title) => api.renameWorkflow(name, title.trim()).then(() => loadTitles(true))}
          onDone={onChange}
          onClose={() => setAsks(null)}
        />
      ) : null}
      {asks === 'folder' ? (
        <FolderDialog
          what={shown}
          first={card.folder}
          folders={folders}
          send={(folder) => api.putInFolder(name, folder)}
          onDone={onChange}
          onClose={() => setAsks(null)}
        />
      ) : null}
      {asks === 'delete' ? (
        <DeleteDialog
          what={`the workflow ${shown}`}
          act={() => api.deleteWorkflow(name)}
          onDone={onChange}
          onClose={() => setAsks(null)}
        >
          <p>Its schedules, webhooks and pages stop at once. Its runs stay, and so do drafts of it.</p>
        </DeleteDialog>
      ) : null}
    </>
  )
}

const ask = (): void => uiStore.setState({ overlay: 'run' })

/** Call when the draft is open in the editor; not at all if another one is. */
function onceOpen(id: string, then: () => void): void {
  const stop = docStore.subscribe((state) => {
    if (state.id === null) return
    stop()
    if (state.id === id) then()
  })
}

const runsOf = (name: string): string => `/runs?workflow=${encodeURIComponent(name)}`

/** A draft that is no workflow yet. Its document is fetched for its picture. */
export function DraftTile({
  draft,
  folders,
  specs,
  why,
  onChange,
}: ItemProps & { draft: DraftSummary; folders: readonly string[] }): ReactElement {
  const stored = useData(() => api.draft(draft.id), [draft.id, draft.rev])
  const [asks, setAsks] = useState<'name' | 'folder' | null>(null)
  const doc = stored.value?.document ?? null
  const name = draft.name || 'Without a name'
  const act = (what: (draft: { name: string; document: Document }) => unknown) => () =>
    void api.draft(draft.id).then(what).catch(failed)
  const remove = async (): Promise<void> => {
    try {
      const before = await api.draft(draft.id)
      await api.deleteDraft(draft.id)
      onChange()
      toast(`Deleted ${name}`, 'plain', {
        label: 'Undo',
        onSelect: () =>
          void api
            .createDraft(before.document, before.name, before.base_version)
            .then((made) => (before.folder ? api.putDraftInFolder(made.id, before.folder) : made))
            .then(onChange, failed),
      })
    } catch (error) {
      failed(error)
    }
  }
  const last = draft.last_run
  return (
    <>
      <Tile
        name={name}
        to={`/w/${draft.id}`}
        doc={doc}
        specs={specs}
        pill={{ tone: 'quiet', words: 'Draft' }}
        about={`${last ? wordsOfRun(last.status) : 'Never run'}. ${doc ? sentenceOf(doc) : ''}`}
        start={[
          'edit',
          <>
            Not published, saved <Ago at={draft.updated_at_ms} />
          </>,
        ]}
        actions={
          <>
            <Button kind="primary" icon="edit" aria-label={`Open ${name}`} onClick={() => navigate(`/w/${draft.id}`)}>
              Open
            </Button>
            <More
              name={name}
              entries={[
                { label: 'Open', icon: 'edit', onSelect: () => navigate(`/w/${draft.id}`) },
                { label: 'Runs', icon: 'play', onSelect: () => navigate(`/runs?draft=${draft.id}`) },
                { label: 'Rename', icon: 'edit', why, changes: true, onSelect: () => setAsks('name') },
                { label: 'Move to folder', icon: 'file', why, changes: true, onSelect: () => setAsks('folder') },
                {
                  label: 'Make a copy',
                  icon: 'copy',
                  why,
                  changes: true,
                  onSelect: act(({ document, name }) => api.createDraft(document, `${name}-copy`).then(onChange)),
                },
                {
                  label: 'Download JSON',
                  icon: 'download',
                  onSelect: act(({ document, name }) => download(name, document)),
                },
                'line',
                { label: 'Delete', icon: 'trash', why, changes: true, onSelect: () => void remove() },
              ]}
            />
          </>
        }
      />
      {asks === 'name' ? <RenameDialog draft={draft} onDone={onChange} onClose={() => setAsks(null)} /> : null}
      {asks === 'folder' ? (
        <FolderDialog
          what={name}
          first={draft.folder}
          folders={folders}
          send={(folder) => api.putDraftInFolder(draft.id, folder)}
          onDone={onChange}
          onClose={() => setAsks(null)}
        />
      ) : null}
    </>
  )
}

const wordsOfRun = (status: string): string =>
  status === 'succeeded'
    ? 'Its last run succeeded'
    : status === 'failed'
      ? 'Its last run failed'
      : `Last run: ${status}`

function More({ name, entries }: { name: string; entries: MenuEntry[] }): ReactElement {
  return (
    <MenuButton icon="more" iconOnly label={`More for ${name}`} entries={entries}>
      {`More for ${name}`}
    </MenuButton>
  )
}

interface DialogProps {
  onDone: () => void
  onClose: () => void
}

function FolderDialog({
  what,
  first,
  folders,
  send,
  onDone,
  onClose,
}: DialogProps & {
  what: string
  first: string
  folders: readonly string[]
  send: (folder: string) => Promise<unknown>
}): ReactElement {
  return (
    <TextDialog
      title={`Move ${what}`}
      label="Folder"
      hint="Empty: in no folder. A folder is there while a workflow or a draft is in it."
      first={first}
      options={folders}
      button="Move"
      send={send}
      onDone={onDone}
      onClose={onClose}
    />
  )
}

function RenameDialog({ draft, onDone, onClose }: DialogProps & { draft: DraftSummary }): ReactElement {
  const send = async (name: string): Promise<void> => {
    if (!name.trim()) throw new Error('Enter a name.')
    const stored = await api.draft(draft.id)
    await api.saveDraft(draft.id, stored.rev, { ...stored.document, name: name.trim() }, name.trim())
  }
  return (
    <TextDialog
      title={`Rename ${draft.name}`}
      label="Name"
      first={draft.name}
      button="Rename"
      send={send}
      onDone={onDone}
      onClose={onClose}
    />
  )
}

function TextDialog({
  title,
  label,
  hint,
  first,
  max = 60,
  options,
  button,
  send,
  onDone,
  onClose,
}: DialogProps & {
  title: string
  label: string
  hint?: string
  first: string
  max?: number
  options?: readonly string[]
  button: string
  send: (text: string) => Promise<unknown>
}): ReactElement {
  const [text, setText] = useState(first)
  const [wrong, setWrong] = useState('')
  const submit = (): void =>
    void send(text).then(
      () => {
        onDone()
        onClose()
      },
      (error: unknown) => setWrong(messageOf(error)),
    )
  return (
    <Dialog
      title={title}
      open
      onClose={onClose}
      foot={
        <Button kind="primary" changes onClick={submit}>
          {button}
        </Button>
      }
    >
      <form onSubmit={(event) => (event.preventDefault(), submit())}>
        <label htmlFor="home-text">{label}</label>
        <input
          id="home-text"
          type="text"
          maxLength={max}
          list={options ? 'home-options' : undefined}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {options ? (
          <datalist id="home-options">
            {options.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        ) : null}
        {hint ? <p className="label">{hint}</p> : null}
        {wrong ? (
          <p className="notice" data-tone="err" role="alert">
            {wrong}
          </p>
        ) : null}
      </form>
    </Dialog>
  )
}
