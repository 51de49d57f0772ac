// The front page: workflows and drafts, open approvals, recent runs, and examples to start with. Files dropped
// anywhere on it become drafts.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../net/api'
import type { LastRun, WorkflowHead } from '../api/schemas'
import type { Document, DraftSummary, Example } from '../api/types'
import { Link, navigate } from '../ui/navigation'
import { loadSpecs, specsStore } from '../state/doc'
import { emptyDocument } from '../document/document'
import TopBar from '../edit/shell/TopBar'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Icon } from '../ui/icons'
import { MenuButton } from '../ui/Menu'
import { Status } from '../ui/status'
import { toast } from '../ui/Toast'
import { useData } from '../ui/useData'
import { isForPeople } from '../edit/shell/waiting'
import { titleOf } from './answer'
import { download, importText, sampleInput } from './importing'
import { Ago } from '../ui/Ago'
import { ListState, Stale, usePolled } from './parts'
import { messageOf } from '../ui/words'
import { useReadOnly } from '../ui/rights'
import { Thumb } from './Thumb'
import './pages.css'
import './home.css'

const RECENT = 8

export default function Home(): ReactElement {
  const drafts = usePolled(() => api.drafts(), [])
  const workflows = usePolled(() => api.workflows(), [])
  const examples = useData(() => api.examples(), [])
  const runs = usePolled(() => api.runs({ limit: RECENT, counts: 0 }), [])
  const waits = usePolled(() => api.waits(), [])
  const specs = useStore(specsStore, (s) => s.specs)
  const file = useRef<HTMLInputElement>(null)
  const [trouble, setTrouble] = useState<string[]>([])
  const why = useReadOnly()
  const dropping = useDrop((files) => void takeFiles(files))
  useEffect(() => void loadSpecs().catch(() => undefined), [])

  const open = async (document: Document, name = document.name, base?: number): Promise<void> => {
    try {
      navigate(`/w/${(await api.createDraft(document, name, base)).id}`)
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const takeFiles = async (files: readonly File[]): Promise<void> => {
    if (why) return void toast(why, 'err')
    const wrong: string[] = []
    let last: string | null = null
    for (const each of files) {
      try {
        const { draft, name, findings } = await importText(await each.text(), each.name)
        last = draft.id
        toast(
          findings.length
            ? `Imported “${name}” with ${findings.length} ${findings.length === 1 ? 'problem' : 'problems'}`
            : `Imported “${name}”`,
          findings.length ? 'wait' : 'ok',
        )
      } catch (error) {
        wrong.push(messageOf(error))
      }
    }
    setTrouble(wrong)
    if (last && files.length === 1) navigate(`/w/${last}`)
    else drafts.reload()
  }
  usePaste((text) => {
    if (why) return
    importText(text).then(
      ({ draft }) => navigate(`/w/${draft.id}`),
      (error: unknown) => setTrouble([messageOf(error)]),
    )
  })

  const people = (waits.value ?? []).filter(isForPeople)
  const recent = runs.value?.runs ?? []
  const stored = (workflows.value ?? []).filter(
    (workflow) => !(drafts.value ?? []).some((draft) => draft.base_name === workflow.name),
  )
  const choose = (): void => file.current?.click()
  return (
    <div className="screen" data-dropping={dropping || undefined}>
      <TopBar
        approvals={people.length}
        right={
          <>
            <Button icon="upload" className="home__import" why={why} onClick={choose}>
              Import
            </Button>
            <Button
              kind="primary"
              icon="plus"
              className="home__new"
              why={why}
              onClick={() => void open(emptyDocument())}
            >
              New workflow
            </Button>
          </>
        }
      />
      <input
        ref={file}
        type="file"
        accept=".json,application/json"
        multiple
        hidden
        onChange={(event) => {
          void takeFiles([...(event.target.files ?? [])])
          event.target.value = ''
        }}
      />
      <main className="page page--wide home">
        <div className="home__main">
          {trouble.map((text) => (
            <p key={text} className="notice" data-tone="err" role="alert">
              {text}{' '}
              <Button kind="bare" onClick={() => setTrouble([])}>
                Dismiss
              </Button>
            </p>
          ))}
          <section aria-labelledby="home-workflows">
            <h1 id="home-workflows">Workflows</h1>
            <Stale data={drafts} />
            {drafts.value?.length || stored.length ? (
              <ul className="rows">
                {(drafts.value ?? []).map((draft) => (
                  <DraftRow
                    key={draft.id}
                    draft={draft}
                    last={lastRun(draft, workflows.value ?? [])}
                    why={why}
                    onChange={drafts.reload}
                  />
                ))}
                {stored.map((workflow) => (
                  <StoredRow key={workflow.name} workflow={workflow} why={why} onOpen={open} />
                ))}
              </ul>
            ) : (
              <ListState data={drafts} empty>
                <div className="home__empty">
                  <EmptyState icon="block" title="No workflows yet">
                    <p>
                      Create one, drop a JSON file here, or open an example below. Workflows from Sim are converted.
                    </p>
                    <div className="home__buttons">
                      <Button why={why} onClick={choose}>
                        Import file
                      </Button>
                      <Button kind="primary" why={why} onClick={() => void open(emptyDocument())}>
                        New workflow
                      </Button>
                    </div>
                  </EmptyState>
                </div>
              </ListState>
            )}
          </section>
          <section aria-labelledby="home-examples">
            <h2 id="home-examples">Examples</h2>
            <p className="quiet">
              Each shows one feature. None needs a key: with <code>weft serve --dev-model</code>, a script answers for
              models.
            </p>
            {examples.value ? (
              <ul className="home__examples">
                {examples.value.map((example) => (
                  <ExampleCard key={example.name} example={example} specs={specs} why={why} onOpen={open} />
                ))}
              </ul>
            ) : (
              <ListState data={examples} empty>
                {null}
              </ListState>
            )}
          </section>
        </div>
        <aside className="home__side">
          <section aria-labelledby="home-waits">
            <h2 id="home-waits">
              <Link to="/approvals">Pending approvals</Link>
            </h2>
            {people.length ? (
              <ul className="rows">
                {people.slice(0, 5).map((wait) => (
                  <li key={`${wait.run} ${wait.id}`} className="home__wait">
                    <Icon name="approval" />
                    <span className="home__two">
                      <Link to={`/approvals?wait=${encodeURIComponent(`${wait.run} ${wait.id}`)}`}>
                        {titleOf(wait)}
                      </Link>
                      <span className="label">
                        {wait.workflow}, <Ago at={wait.opened_at_ms} />
                      </span>
                    </span>
                  </li>
                ))}
                {people.length > 5 ? (
                  <li>
                    <Link to="/approvals">and {people.length - 5} more</Link>
                  </li>
                ) : null}
              </ul>
            ) : (
              <ListState data={waits} empty>
                <p className="quiet home__none">No pending approvals.</p>
              </ListState>
            )}
          </section>
          <section aria-labelledby="home-runs">
            <h2 id="home-runs">
              <Link to="/runs">Recent runs</Link>
            </h2>
            {recent.length ? (
              <ul className="rows">
                {recent.map((run) => (
                  <li key={run.id}>
                    <Status status={run.status} />
                    <Link className="home__run" to={`/runs/${run.id}`}>
                      {run.workflow}
                    </Link>
                    <span className="label">
                      <Ago at={run.created_at_ms} />
                    </span>
                  </li>
                ))}
              </ul>
            ) : (
              <ListState data={runs} empty>
                <p className="quiet home__none">No runs yet. Run an example to see one.</p>
              </ListState>
            )}
          </section>
        </aside>
      </main>
      {dropping ? (
        <div className="home__drop" aria-hidden="true">
          <p>Drop to import</p>
        </div>
      ) : null}
    </div>
  )
}

/** Of the draft, or of the workflow that it was saved as: the later one. */
function lastRun(draft: DraftSummary, workflows: readonly WorkflowHead[]): LastRun | null {
  const saved = workflows.find((workflow) => workflow.name === draft.base_name)?.last_run ?? null
  const own = draft.last_run
  return saved && (!own || saved.created_at_ms > own.created_at_ms) ? saved : own
}

function DraftRow({
  draft,
  last,
  why,
  onChange,
}: {
  draft: DraftSummary
  last: LastRun | null
  /** Why it cannot be changed. */
  why: string | null
  onChange: () => void
}): ReactElement {
  const changed = draft.base_rev !== draft.rev
  const remove = async (): Promise<void> => {
    try {
      const stored = await api.draft(draft.id)
      await api.deleteDraft(draft.id)
      onChange()
      toast(`Deleted ${draft.name}`, 'plain', {
        label: 'Undo',
        onSelect: () =>
          void api
            .createDraft(stored.document, stored.name, stored.base_version)
            .then(onChange, (error: unknown) => toast(messageOf(error), 'err')),
      })
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const act = (what: (draft: { name: string; document: Document }) => unknown) => () =>
    void api
      .draft(draft.id)
      .then(what)
      .catch((error: unknown) => toast(messageOf(error), 'err'))
  return (
    <li className="home__row">
      <Link className="home__name" to={`/w/${draft.id}`}>
        {draft.name}
      </Link>
      <span className="label">
        {draft.base_version ? `v${draft.base_version}${changed ? ', edited' : ''}` : 'draft'}
      </span>
      <span className="home__fill" />
      {last ? (
        <Link className="home__last" to={`/runs/${last.id}`}>
          <Status status={last.status} />
        </Link>
      ) : null}
      <span className="label">
        saved <Ago at={draft.updated_at_ms} />
      </span>
      <MenuButton
        kind="bare"
        icon="more"
        iconOnly
        label={`More for ${draft.name}`}
        entries={[
          { label: 'Open', icon: 'edit', onSelect: () => navigate(`/w/${draft.id}`) },
          { label: 'Runs', icon: 'play', onSelect: () => navigate(`/runs?draft=${draft.id}`) },
          {
            label: 'Make a copy',
            icon: 'copy',
            why,
            onSelect: act(({ document, name }) => api.createDraft(document, `${name}-copy`).then(onChange)),
          },
          { label: 'Download JSON', icon: 'download', onSelect: act(({ document, name }) => download(name, document)) },
          'line',
          { label: 'Delete', icon: 'trash', why, onSelect: () => void remove() },
        ]}
      >{`More for ${draft.name}`}</MenuButton>
    </li>
  )
}

function StoredRow({
  workflow,
  why,
  onOpen,
}: {
  workflow: WorkflowHead
  why: string | null
  onOpen: (document: Document, name: string, base: number) => Promise<void>
}): ReactElement {
  const last = workflow.last_run
  const edit = async (): Promise<void> => {
    try {
      const { document, name, version } = await api.workflow(workflow.name)
      await onOpen(document, name, version)
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <li className="home__row">
      {why === null ? (
        <button type="button" className="home__name home__link" onClick={() => void edit()}>
          {workflow.name}
        </button>
      ) : (
        <Link className="home__name" to={`/runs?workflow=${encodeURIComponent(workflow.name)}`}>
          {workflow.name}
        </Link>
      )}
      <span className="label">v{workflow.version}</span>
      <span className="home__fill" />
      {last ? (
        <Link className="home__last" to={`/runs/${last.id}`}>
          <Status status={last.status} />
        </Link>
      ) : null}
      <span className="label">
        stored <Ago at={workflow.created_at_ms} />
      </span>
      <Button why={why} onClick={() => void edit()}>
        Edit
      </Button>
    </li>
  )
}

function ExampleCard({
  example,
  specs,
  why,
  onOpen,
}: {
  example: Example
  why: string | null
  specs: Parameters<typeof Thumb>[0]['specs']
  onOpen: (document: Document) => Promise<void>
}): ReactElement {
  const [starting, setStarting] = useState(false)
  const run = async (): Promise<void> => {
    setStarting(true)
    try {
      navigate(`/runs/${(await api.startDocument(example.document, sampleInput(example.document.input))).run}`)
    } catch (error) {
      toast(messageOf(error), 'err')
      setStarting(false)
    }
  }
  const [, topic, rest] = /^Teaches ([^:]+): (.*)$/s.exec(example.description) ?? [null, null, example.description]
  return (
    <li className="home__example">
      <Thumb doc={example.document} specs={specs} />
      <h3>{example.title}</h3>
      <p className="home__about">
        {topic ? <b>{topic[0]!.toUpperCase() + topic.slice(1)}. </b> : null}
        {rest ? rest[0]!.toUpperCase() + rest.slice(1) : null}
      </p>
      <div className="home__buttons">
        <Button why={why} onClick={() => void onOpen(example.document)} aria-label={`Open a copy of ${example.title}`}>
          Open a copy
        </Button>
        <Button
          icon="play"
          why={why ?? (starting ? 'Starting' : null)}
          onClick={() => void run()}
          aria-label={`Run it: ${example.title}`}
        >
          Run it
        </Button>
      </div>
    </li>
  )
}

/** Files dragged over the window; true while they are. */
function useDrop(take: (files: readonly File[]) => void): boolean {
  const [over, setOver] = useState(false)
  const latest = useRef(take)
  latest.current = take
  useEffect(() => {
    const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false
    const onOver = (event: DragEvent): void => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(true)
    }
    const onLeave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false)
    }
    const onDrop = (event: DragEvent): void => {
      setOver(false)
      if (!hasFiles(event)) return
      event.preventDefault()
      latest.current([...(event.dataTransfer?.files ?? [])])
    }
    addEventListener('dragover', onOver)
    addEventListener('dragleave', onLeave)
    addEventListener('drop', onDrop)
    return () => {
      removeEventListener('dragover', onOver)
      removeEventListener('dragleave', onLeave)
      removeEventListener('drop', onDrop)
    }
  }, [])
  return over
}

/** JSON pasted outside of text fields. */
function usePaste(take: (text: string) => void): void {
  const latest = useRef(take)
  latest.current = take
  useEffect(() => {
    const onPaste = (event: ClipboardEvent): void => {
      const text = event.clipboardData?.getData('text/plain').trim() ?? ''
      if (event.target instanceof HTMLElement && event.target.matches('input, textarea, select')) return
      if (text.startsWith('{')) latest.current(text)
    }
    addEventListener('paste', onPaste)
    return () => removeEventListener('paste', onPaste)
  }, [])
}
