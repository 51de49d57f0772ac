// Examples: one row, the rest unfolds. And what a first visit sees: what weft is for, and an example that is already running.

import { useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import type { BlockSpec, Document, Example } from '../../api/types'
import { serverNow } from '../../net/clock'
import { isEnded } from '../../run'
import { loadMe, mayNot } from '../../state/me'
import { loadServer } from '../../state/server'
import { Button } from '../../ui/Button'
import { Icon, iconOf } from '../../ui/icons'
import { navigate } from '../../ui/navigation'
import { toneOf, wordOf } from '../../ui/status'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { sampleInput } from '../importing'
import { usePolled } from '../parts'
import { Tile } from './Tile'
import { sentenceOf } from './words'

const ROW = 4
/** The block that describes an example best gives it its picture. */
const TELLING = [
  'agent',
  'chat_trigger',
  'approval',
  'form',
  'run_workflow',
  'loop',
  'parallel',
  'wait',
  'sql',
  'python',
  'webhook',
  'schedule',
  'http',
] // prettier-ignore

export function Examples({
  examples,
  all,
  why,
  onOpen,
}: {
  examples: readonly Example[]
  /** All of them at once. */
  all: boolean
  why: string | null
  onOpen: (document: Document) => Promise<void>
}): ReactElement {
  const [unfolded, setUnfolded] = useState(false)
  const shown = all || unfolded ? examples : examples.slice(0, ROW)
  return (
    <section aria-labelledby="home-examples">
      <div className="home__head">
        <h2 id="home-examples">Examples</h2>
        <span className="quiet">each runs without a key</span>
        <span className="home__fill" />
        {shown.length < examples.length ? (
          <Button kind="bare" onClick={() => setUnfolded(true)}>
            All {examples.length} examples
          </Button>
        ) : null}
      </div>
      <ul className="home__examples">
        {shown.map((example) => (
          <ExampleTile key={example.name} example={example} why={why} onOpen={onOpen} />
        ))}
      </ul>
    </section>
  )
}

/** Whole workflows that run when their accounts are connected: the picture, what it does, and the services that it uses. */
export function Templates({
  templates,
  specs,
  all,
  why,
  onOpen,
}: {
  templates: readonly Example[]
  specs: ReadonlyMap<string, BlockSpec>
  /** All of them at once. */
  all: boolean
  why: string | null
  onOpen: (document: Document) => Promise<void>
}): ReactElement {
  const [unfolded, setUnfolded] = useState(false)
  const shown = all || unfolded ? templates : templates.slice(0, ROW)
  return (
    <section aria-labelledby="home-templates">
      <div className="home__head">
        <h2 id="home-templates">Templates</h2>
        <span className="quiet">connect your accounts, and run</span>
        <span className="home__fill" />
        {shown.length < templates.length ? (
          <Button kind="bare" onClick={() => setUnfolded(true)}>
            All {templates.length} templates
          </Button>
        ) : null}
      </div>
      <ul className="home__grid home__templates">
        {shown.map((template) => (
          <Tile
            key={template.name}
            name={template.title}
            to={() => (why ? undefined : void onOpen(template.document))}
            doc={template.document}
            specs={specs}
            pill={{ tone: 'quiet', words: beginOf(template.document) }}
            about={template.description}
            start={['link', servicesOf(template.document, specs)]}
            actions={
              <Button kind="primary" changes why={why} onClick={() => void onOpen(template.document)}>
                Use it
              </Button>
            }
          />
        ))}
      </ul>
    </section>
  )
}

const BEGINS: Record<string, string> = { schedule: 'Schedule', webhook: 'Webhook', form_trigger: 'Form' }

/** What starts it. */
function beginOf(doc: Document): string {
  const begin = Object.values(doc.blocks).find((block) => block.type in BEGINS)
  return begin ? BEGINS[begin.type]! : 'By hand'
}

/** "Gmail, Google Sheets, Stripe" */
function servicesOf(doc: Document, specs: ReadonlyMap<string, BlockSpec>): string {
  const types = new Set(Object.values(doc.blocks).map((block) => block.type))
  const titles = [...types]
    .filter((type) => type.startsWith('connector.') || type === 'knowledge')
    .map((type) => specs.get(type)?.title ?? type)
  return titles.sort().join(', ')
}

function ExampleTile({
  example,
  why,
  onOpen,
}: {
  example: Example
  why: string | null
  onOpen: (document: Document) => Promise<void>
}): ReactElement {
  const [starting, setStarting] = useState(false)
  const types = Object.values(example.document.blocks).map((block) => block.type)
  const telling = TELLING.find((type) => types.includes(type)) ?? types.find((type) => type !== 'start') ?? 'start'
  const [, topic] = /^Teaches ([^:]+): /.exec(example.description) ?? []
  const run = async (): Promise<void> => {
    setStarting(true)
    try {
      navigate(`/runs/${(await api.startDocument(example.document, sampleInput(example.document.input))).run}`)
    } catch (error) {
      toast(messageOf(error), 'err')
      setStarting(false)
    }
  }
  return (
    <li className="example" title={example.description}>
      <span className="plate">
        <Icon name={iconOf(telling)} />
      </span>
      <div className="example__words">
        <button
          type="button"
          className="example__open"
          aria-disabled={why ? true : undefined}
          title={why ?? undefined}
          onClick={() => (why ? undefined : void onOpen(example.document))}
        >
          <span className="visually-hidden">Open a copy of </span>
          {example.title}
        </button>
        <span className="label">{topic ?? sentenceOf(example.document)}</span>
      </div>
      <Button
        kind="bare"
        icon="play"
        iconOnly
        changes
        why={why ?? (starting ? 'Starting' : null)}
        onClick={() => void run()}
      >
        {`Run it: ${example.title}`}
      </Button>
    </li>
  )
}

const FIRST = 'durable-demo'
const FIRST_KEY = 'weft-first-visit'
const HERE = /^(localhost|127\.|\[::1\])/

/** Nothing is stored and nothing has run: what weft is for. On this machine, where the examples have an endpoint to call, one of
 * them runs already. The server starts it once, however often and in however many windows this page is opened. */
export function FirstVisit({
  examples,
  specs,
}: {
  examples: readonly Example[]
  specs: ReadonlyMap<string, BlockSpec>
}): ReactElement {
  const example = examples.find((each) => each.name === FIRST)
  const started = useData(async () => {
    await Promise.all([loadServer(), loadMe()]) // it starts unasked: only where that is known to be allowed
    const ran = (await api.runs({ limit: 1, counts: 0 })).runs[0]
    if (!example || mayNot('editor') || !HERE.test(location.hostname) || (ran && ran.workflow !== FIRST)) return null
    return (await api.startOnce(example.document, sampleInput(example.document.input), FIRST_KEY)).run
  }, [example === undefined])
  return (
    <section className="first" aria-labelledby="home-first">
      <div className="first__words">
        <h2 id="home-first">Draw what should happen. weft carries it through.</h2>
        <p>
          Each step is written down before the next one begins, so a run continues where it was after a crash, a restart
          or a week of waiting for an answer.
        </p>
      </div>
      {started.value && example ? (
        <ul className="first__run">
          <FirstRun id={started.value} doc={example.document} specs={specs} />
        </ul>
      ) : null}
    </section>
  )
}

function FirstRun({
  id,
  doc,
  specs,
}: {
  id: string
  doc: Document
  specs: ReadonlyMap<string, BlockSpec>
}): ReactElement {
  const run = usePolled(() => api.run(id), [id], 2000).value
  const states = Object.fromEntries((run?.nodes ?? []).map((node) => [node.block, node.status]))
  const status = run?.status ?? 'queued'
  const sleeps = status === 'waiting' && run?.waits[0]?.expires_at_ms
  const left = sleeps ? Math.max(0, Math.round((sleeps - serverNow()) / 1000)) : 0
  return (
    <Tile
      name="Durable demo"
      to={`/runs/${id}`}
      doc={doc}
      specs={specs}
      states={states}
      pill={{ tone: toneOf(status), words: wordOf(status) }}
      run={id}
      about={
        isEnded(status)
          ? 'This ran for you just now. Look at what it did.'
          : sleeps
            ? `It sleeps, ${left} s more. Stop the server and start it again: it continues.`
            : 'It runs now, for you. Look inside.'
      }
      start={['play', 'An example that started with your first visit']}
      actions={
        <Button kind="primary" icon="play" onClick={() => navigate(`/runs/${id}`)}>
          Watch
        </Button>
      }
    />
  )
}
