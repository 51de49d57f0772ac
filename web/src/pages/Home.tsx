// The front page: what waits for the person, workflows and drafts as cards, and examples to start with. Files dropped anywhere on
// it become drafts.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api, type CardQuery } from '../net/api'
import { serverNow } from '../net/clock'
import type { CardPage, Document, Example } from '../api/types'
import { navigate, setQuery, useLocation } from '../ui/navigation'
import { loadSpecs, specsStore } from '../state/doc'
import { emptyDocument } from '../document/document'
import TopBar from '../edit/shell/TopBar'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Icon } from '../ui/icons'
import { MenuButton } from '../ui/Menu'
import { toast } from '../ui/Toast'
import { useData } from '../ui/useData'
import { useLater } from '../ui/useLater'
import { isForPeople } from '../edit/shell/waiting'
import { Examples, FirstVisit, Templates } from './home/Examples'
import { DraftTile, WorkflowTile } from './home/items'
import { Tickets } from './home/Tickets'
import { useDrop } from './drop'
import { addressOf, importText, type Imported } from './importing'
import { ListState, Stale, usePolled } from './parts'
import { messageOf } from '../ui/words'
import { useReadOnly } from '../ui/rights'
import './pages.css'
import './home.css'

const PAGE = 24
const EXAMPLES_UNTIL = 10
const ORDERS = { run: 'Last run', changed: 'Last change', name: 'Name' } as const
type Order = keyof typeof ORDERS
/** The folder of drafts that are no workflow yet. */
const DRAFTS = '\u0000drafts'

export default function Home(): ReactElement {
  const { query } = useLocation()
  const folder = query.get('folder')
  const order: Order = (query.get('order') ?? 'run') in ORDERS ? ((query.get('order') ?? 'run') as Order) : 'run'
  const [typed, setTyped] = useState('')
  const text = useLater(typed.trim(), 200)
  const [pages, setPages] = useState(1)
  const cards = usePolled(
    () => firstCards({ folder: folder ?? undefined, text: text || undefined, order }, pages),
    [folder, text, order, pages],
  )
  const drafts = usePolled(() => api.drafts(), [])
  const examples = useData(() => api.examples(), [])
  const waits = usePolled(() => api.waits(), [])
  const specs = useStore(specsStore, (s) => s.specs)
  const file = useRef<HTMLInputElement>(null)
  const [trouble, setTrouble] = useState<string[]>([])
  const why = useReadOnly()
  const dropping = useDrop((files) => void takeFiles(files))
  useEffect(() => void loadSpecs().catch(() => undefined), [])

  const reload = (): void => {
    cards.reload()
    drafts.reload()
  }
  const open = async (document: Document): Promise<void> => {
    try {
      navigate(addressOf(await api.createDraft(document, document.name)))
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const takeFiles = async (files: readonly File[]): Promise<void> => {
    if (why) return void toast(why, 'err')
    const wrong: string[] = []
    let last: Imported | null = null
    for (const each of files) {
      try {
        const imported = await importText(await each.text(), each.name)
        const { name, findings } = imported
        last = imported
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
    if (last && files.length === 1) navigate(addressOf(last.draft))
    else drafts.reload()
  }
  usePaste((text) => {
    if (why) return
    importText(text).then(
      (imported) => navigate(addressOf(imported.draft)),
      (error: unknown) => setTrouble([messageOf(error)]),
    )
  })

  const people = (waits.value ?? []).filter(isForPeople)
  const published = Object.values(cards.value?.folders ?? {}).reduce((sum, count) => sum + count, 0)
  // A draft of a workflow has the card of the workflow.
  const own = (drafts.value ?? []).filter((draft) => draft.base_name === null)
  const folders: Record<string, number> = { ...cards.value?.folders }
  for (const draft of own) folders[draft.folder] = (folders[draft.folder] ?? 0) + 1
  const total = published + own.length
  const known = cards.value !== null && drafts.value !== null
  const choose = (): void => file.current?.click()
  return (
    <div className="screen" data-dropping={dropping || undefined}>
      <TopBar
        approvals={people.length}
        right={
          <>
            <Button kind="bare" icon="upload" className="home__import" why={why} onClick={choose}>
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
      <main className="page home">
        {trouble.map((text) => (
          <p key={text} className="notice" data-tone="err" role="alert">
            {text}{' '}
            <Button kind="bare" onClick={() => setTrouble([])}>
              Dismiss
            </Button>
          </p>
        ))}
        <Tickets waits={people} onDone={waits.reload} />
        <section aria-labelledby="home-workflows">
          <div className="home__head home__bar">
            <h1 id="home-workflows">Workflows</h1>
            {total ? <Folders folders={folders} total={total} drafts={own.length} chosen={folder} /> : null}
            <span className="home__fill" />
            {total ? (
              <>
                <label className="home__filter">
                  <Icon name="search" size={14} />
                  <input
                    type="search"
                    aria-label="Filter by name or block"
                    placeholder="Filter by name or block"
                    value={typed}
                    onChange={(event) => setTyped(event.target.value)}
                  />
                </label>
                <MenuButton
                  kind="bare"
                  label="Order"
                  title="Order"
                  entries={Object.entries(ORDERS).map(([id, label]) => ({
                    label,
                    onSelect: () => setQuery({ order: id === 'run' ? null : id }),
                  }))}
                >
                  {ORDERS[order]} <Icon name="down" size={12} />
                </MenuButton>
              </>
            ) : null}
          </div>
          <Stale data={cards} />
          {known && !total ? (
            <>
              {examples.value ? <FirstVisit examples={examples.value} specs={specs} /> : null}
              <p className="quiet home__none">
                No workflows yet. Create one, drop a JSON file here, or open an example below. Workflows from n8n and
                Sim are converted.
              </p>
            </>
          ) : cards.value === null && cards.error === null ? (
            <Skeleton />
          ) : (
            <Grid
              page={cards.value}
              drafts={drafts.value ?? []}
              own={own.filter((draft) => folder === null || folder === DRAFTS || draft.folder === folder)}
              folders={Object.keys(folders).filter(Boolean).sort()}
              {...{ folder, text, order, specs, why, reload }}
            />
          )}
          {cards.value === null ? (
            <ListState data={cards.error ? cards : { ...cards, value: [] }} empty={false}>
              {null}
            </ListState>
          ) : null}
          {typeof cards.value?.next === 'number' ? (
            <p className="home__more">
              <Button why={cards.loading ? 'Loading' : null} onClick={() => setPages(pages + 1)}>
                More workflows
              </Button>
            </p>
          ) : null}
        </section>
        {known && (published < EXAMPLES_UNTIL || query.has('examples')) && folder === null && !text ? (
          examples.value ? (
            <>
              <Templates
                templates={examples.value.filter(isTemplate)}
                specs={specs}
                all={false}
                why={why}
                onOpen={open}
              />
              <Examples examples={examples.value.filter(isExample)} all={!total} why={why} onOpen={open} />
            </>
          ) : (
            <ListState data={examples} empty>
              {null}
            </ListState>
          )
        ) : null}
      </main>
      {dropping ? (
        <div className="dropping" aria-hidden="true">
          <p>Drop to import</p>
        </div>
      ) : null}
    </div>
  )
}

const isTemplate = (each: Example): boolean => each.template
const isExample = (each: Example): boolean => !each.template

/** The first `pages` pages of cards as one. All are requested each time: the states on the last ones change as well. */
async function firstCards(where: Pick<CardQuery, 'folder' | 'text' | 'order'>, pages: number): Promise<CardPage> {
  const asked = { ...where, ...(where.folder === DRAFTS ? { limit: 1 } : { limit: PAGE }) }
  const since = new Date().setHours(0, 0, 0, 0)
  const page = await api.cards({ ...asked, since })
  for (let n = 1; n < pages && page.next !== null; n++) {
    const more = await api.cards({ ...asked, since, after: page.next })
    page.cards.push(...more.cards)
    page.next = more.next
  }
  return page
}

interface GridProps {
  page: CardPage | null
  drafts: NonNullable<Awaited<ReturnType<typeof api.drafts>>>
  /** Those that are no workflow yet. */
  own: NonNullable<Awaited<ReturnType<typeof api.drafts>>>
  folder: string | null
  folders: readonly string[]
  text: string
  order: Order
  specs: Parameters<typeof DraftTile>[0]['specs']
  why: string | null
  reload: () => void
}

function Grid({ page, drafts, own, folder, folders, text, order, specs, why, reload }: GridProps): ReactElement {
  const cards = folder === DRAFTS ? [] : (page?.cards ?? [])
  const more = { specs, why, onChange: reload }
  const items = [
    ...cards.map((card) => ({
      key: `w ${card.name}`,
      name: card.title || card.name,
      at: order === 'changed' ? card.activated_at_ms : (card.last_run?.created_at_ms ?? 0),
      tile: (
        <WorkflowTile
          key={`w ${card.name}`}
          card={card}
          draft={drafts.find((draft) => draft.base_name === card.name)}
          folders={folders}
          byChange={order === 'changed'}
          now={serverNow()}
          {...more}
        />
      ),
    })),
    ...own
      .filter((draft) => draft.name.toLowerCase().includes(text.toLowerCase()))
      .map((draft) => ({
        key: draft.id,
        name: draft.name,
        at: Math.max(draft.updated_at_ms, draft.last_run?.created_at_ms ?? 0),
        tile: <DraftTile key={draft.id} draft={draft} folders={folders} {...more} />,
      })),
  ].sort((a, b) => (order === 'name' ? a.name.localeCompare(b.name) : b.at - a.at))
  if (items.length) return <ul className="home__grid">{items.map((item) => item.tile)}</ul>
  return (
    <EmptyState icon="search" title={text ? `No workflow has “${text}” in its name or blocks` : 'This folder is empty'}>
      <Button onClick={() => setQuery({ folder: null })}>Show all workflows</Button>
    </EmptyState>
  )
}

function Folders({
  folders,
  total,
  drafts,
  chosen,
}: {
  folders: Readonly<Record<string, number>>
  total: number
  drafts: number
  chosen: string | null
}): ReactElement {
  const chips: [id: string | null, label: string, count: number][] = [
    [null, 'All', total],
    ...Object.entries(folders)
      .filter(([name]) => name)
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, count]): [string, string, number] => [name, name, count]),
    ...(drafts ? [[DRAFTS, 'Drafts', drafts] as [string, string, number]] : []),
  ]
  return (
    <div className="home__chips" role="group" aria-label="Folders">
      {chips.map(([id, label, count]) => (
        <button
          key={label}
          type="button"
          className="folder"
          aria-pressed={chosen === id}
          onClick={() => setQuery({ folder: id })}
        >
          {id === null ? null : <Icon name={id === DRAFTS ? 'edit' : 'file'} size={13} />}
          {label}
          <span>{count}</span>
        </button>
      ))}
    </div>
  )
}

const GHOSTS = 4

function Skeleton(): ReactElement {
  return (
    <ul className="home__grid" aria-busy="true" aria-label="Loading">
      {Array.from({ length: GHOSTS }, (_, n) => (
        <li key={n} className="tile tile--ghost">
          <div className="tile__picture" />
          <div className="tile__body" />
        </li>
      ))}
    </ul>
  )
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
