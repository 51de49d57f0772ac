// Settings as pages: a list of them at the side, in groups, with a search above. A number shows how many a page has, a red one how
// many of them are broken. On a phone the list is a page of its own.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../net/api'
import { connections } from '../net/connections'
import { people } from '../net/people'
import { secrets } from '../net/secrets'
import { triggers } from '../net/triggers'
import { uiStore, type Theme } from '../state/ui'
import TopBar from '../edit/shell/TopBar'
import { EmptyState } from '../ui/EmptyState'
import { Icon, type IconName } from '../ui/icons'
import { Link, useLocation } from '../ui/navigation'
import { useData } from '../ui/useData'
import { Audit } from './settings/Audit'
import { Connections } from './settings/Connections'
import { Connectors } from './settings/Connectors'
import { Environment } from './settings/Environment'
import { Memory } from './settings/Memory'
import { People } from './settings/People'
import { Secrets } from './settings/Secrets'
import { Session } from './settings/Session'
import { Schedules } from './settings/Schedules'
import { Webhooks } from './settings/Webhooks'
import './pages.css'
import './settings.css'
import './settings/pages.css'

const THEMES: readonly { id: Theme; label: string }[] = [
  { id: 'system', label: 'Match system' },
  { id: 'light', label: 'Light' },
  { id: 'dark', label: 'Dark' },
]

interface Page {
  id: string
  label: string
  icon: IconName
  group: string
  /** Other words that a search finds it by. */
  words: string
  show: () => ReactElement
  count?: number | undefined
  broken?: number | undefined
}

export default function Settings(): ReactElement {
  const { query } = useLocation()
  const pages = usePages()
  // Back from a provider that signed in, and links of before there were pages.
  const asked = query.get('page') ?? (query.has('state') ? 'connections' : location.hash.slice(1))
  const chosen = pages?.find((page) => page.id === asked)
  const shown = chosen ?? pages?.find((page) => page.id === 'connections') ?? pages?.[0]
  return (
    <div className="screen">
      <TopBar />
      <main className="page sets" data-list={asked ? undefined : true}>
        {pages === null ? (
          <p className="loading quiet" role="status">
            Loading
          </p>
        ) : (
          <>
            <Side pages={pages} shown={shown?.id} />
            <div className="settings sets__page" key={shown?.id}>
              <Link className="sets__back" to="/settings">
                <Icon name="back" /> Settings
              </Link>
              {shown ? shown.show() : <EmptyState title="There is no such page" />}
            </div>
          </>
        )}
      </main>
    </div>
  )
}

function Side({ pages, shown }: { pages: readonly Page[]; shown: string | undefined }): ReactElement {
  const [typed, setTyped] = useState('')
  const wanted = typed.trim().toLowerCase()
  const found = pages.filter((page) => `${page.group} ${page.label} ${page.words}`.toLowerCase().includes(wanted))
  const groups = [...new Set(found.map((page) => page.group))]
  return (
    <nav className="sets__side" aria-label="Settings">
      <h1>Settings</h1>
      <label className="sets__find">
        <Icon name="search" size={14} />
        <input
          type="search"
          aria-label="Find a setting"
          placeholder="Find a setting"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>
      {groups.map((group) => (
        <div key={group} className="sets__group">
          <p className="label">{group}</p>
          <ul>
            {found
              .filter((page) => page.group === group)
              .map((page) => (
                <li key={page.id}>
                  <Link to={`/settings?page=${page.id}`} aria-current={page.id === shown ? 'page' : undefined}>
                    <Icon name={page.icon} />
                    <span className="sets__label">{page.label}</span>
                    {page.broken ? (
                      <span className="sets__broken">
                        {page.broken}
                        <span className="visually-hidden"> broken</span>
                      </span>
                    ) : page.count ? (
                      <span className="sets__count">{page.count}</span>
                    ) : null}
                  </Link>
                </li>
              ))}
          </ul>
        </div>
      ))}
      {found.length ? null : <p className="quiet sets__none">No setting has this name.</p>}
    </nav>
  )
}

/** The pages that this person may see; null while that is not known. */
function usePages(): Page[] | null {
  const server = useData(() => api.server(), [])
  const me = useData(people.me, [])
  const role = me.value?.role
  const admin = role === 'admin'
  const editor = admin || role === 'editor'
  const stored = useData(async () => (editor ? (await connections.list()).connections : []), [editor])
  const values = useData(async () => (admin ? secrets.list() : []), [admin])
  const names = useData(async () => (editor ? api.env() : []), [editor])
  const times = useData(() => triggers.schedules(), [])
  const hooks = useData(() => triggers.webhooks(), [])
  if (me.value === null && me.error === null) return null
  const of = (group: string, id: string, label: string, icon: IconName, words: string, show: Page['show']): Page => ({
    group,
    id,
    label,
    icon,
    words,
    show,
  }) // prettier-ignore
  const used = 'What workflows use'
  const started = 'How they start'
  const all: (Page | false)[] = [
    of('You', 'look', 'Look', 'theme', 'theme dark light colours', () => <Look />),
    server.value?.signed_in === true &&
      of('You', 'session', 'Session', 'approval', 'sign out browsers user role', () => <Session me={me.value} />),
    editor && {
      ...of(used, 'connections', 'Connections', 'link', 'oauth api key token password', () => (
        <Connections isAdmin={admin} />
      )),
      count: stored.value?.length,
      broken: stored.value?.filter((each) => each.state !== 'ready').length,
    },
    admin && {
      ...of(used, 'secrets', 'Secrets', 'variables', 'value key password', () => <Secrets />),
      count: values.value?.length,
      broken: values.value?.filter((each) => !each.readable).length,
    },
    editor && {
      ...of(used, 'environment', 'Environment', 'set', 'variables names', () => <Environment />),
      count: names.value?.length,
    },
    of(used, 'connectors', 'Connectors', 'http', 'services openapi', () => <Connectors admin={admin} />),
    of(used, 'memory', 'Memory of agents', 'agent', 'conversations remember', () => <Memory />),
    {
      ...of(started, 'schedules', 'Schedules', 'schedule', 'cron times', () => <Schedules editor={editor} />),
      count: times.value?.length,
      broken: times.value?.filter((each) => each.error).length,
    },
    {
      ...of(started, 'webhooks', 'Webhooks', 'webhook', 'forms chats pages links', () => <Webhooks admin={admin} />),
      count: hooks.value?.length,
    },
    of(started, 'starts', 'From outside', 'play', 'api curl idempotency call', () => <Starts />),
    admin &&
      me.value?.user !== null &&
      of('Server', 'people', 'People and tokens', 'approval', 'users roles invite rights access keys', () => (
        <People />
      )), // prettier-ignore
    admin &&
      of('Server', 'audit', 'Audit', 'file', 'who changed record', () => <Audit open={me.value?.user === null} />),
    of('Server', 'about', 'About', 'help', 'version licenses openapi', () => (
      <About version={server.value?.version ?? null} unknown={server.error !== null} />
    )),
  ]
  return all.filter((page): page is Page => page !== false && page !== undefined)
}

function Look(): ReactElement {
  const theme = useStore(uiStore, (state) => state.theme)
  return (
    <section aria-labelledby="set-theme">
      <h2 id="set-theme">Theme</h2>
      <div className="settings__choice" role="radiogroup" aria-labelledby="set-theme">
        {THEMES.map(({ id, label }) => (
          <label key={id} data-on={theme === id || undefined}>
            <input
              type="radio"
              name="theme"
              className="visually-hidden"
              checked={theme === id}
              onChange={() => uiStore.setState({ theme: id })}
            />
            {label}
          </label>
        ))}
      </div>
    </section>
  )
}

function Starts(): ReactElement {
  return (
    <section aria-labelledby="set-starts">
      <h2 id="set-starts">Starting runs from outside</h2>
      <p className="quiet">
        Any stored workflow can be started by a call. With an <code>Idempotency-Key</code> a repeated call is the same
        run:
      </p>
      <pre
        className="settings__code"
        tabIndex={0}
      >{`curl -X POST ${location.origin}/api/workflows/NAME/runs \\\n  -H "Authorization: Bearer $(weft token)" \\\n  -H 'Content-Type: application/json' -H 'Idempotency-Key: 2026-01-31' -d '{"input": {}}'`}</pre>
    </section>
  )
}

function About({ version, unknown }: { version: string | null; unknown: boolean }): ReactElement {
  return (
    <section aria-labelledby="set-about">
      <h2 id="set-about">About</h2>
      <dl className="readable">
        <div>
          <dt>weft</dt>
          <dd data-testid="weft-version">
            {version === null ? (unknown ? 'version unknown' : '') : `version ${version}`}
          </dd>
        </div>
        <div>
          <dt>API</dt>
          <dd>
            <a href="/openapi.json">OpenAPI description</a>
          </dd>
        </div>
        <div>
          <dt>Licenses</dt>
          <dd>
            <a href="/third-party-licenses.md">What is bundled with this interface, and its licenses</a>
          </dd>
        </div>
      </dl>
    </section>
  )
}
