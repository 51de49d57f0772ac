// Environment names, secrets, schedules and webhooks, what agents remember, how runs are started from outside, theme, and the licenses of what is bundled.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../net/api'
import { people } from '../net/people'
import { uiStore, type Theme } from '../state/ui'
import TopBar from '../edit/shell/TopBar'
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

const THEMES: readonly { id: Theme; label: string }[] = [
  { id: 'system', label: 'Match system' },
  { id: 'light', label: 'Light' },
  { id: 'dark', label: 'Dark' },
]

export default function Settings(): ReactElement {
  const server = useData(() => api.server(), [])
  const me = useData(people.me, [])
  const editor = me.value?.role === 'admin' || me.value?.role === 'editor'
  const theme = useStore(uiStore, (state) => state.theme)
  return (
    <div className="screen">
      <TopBar />
      <main className="page settings">
        <h1>Settings</h1>
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
        {editor ? <Environment /> : null}
        {me.value?.role === 'admin' ? <Secrets /> : null}
        {editor ? <Connections isAdmin={me.value?.role === 'admin'} /> : null}
        <Connectors admin={me.value?.role === 'admin'} />
        <Schedules editor={editor} />
        <Webhooks admin={me.value?.role === 'admin'} />
        <Memory />
        <section aria-labelledby="set-starts">
          <h2 id="set-starts">Starting runs from outside</h2>
          <p className="quiet">
            Any stored workflow can be started by a call. With an <code>Idempotency-Key</code> a repeated call is the
            same run:
          </p>
          <pre
            className="settings__code"
            tabIndex={0}
          >{`curl -X POST ${location.origin}/api/workflows/NAME/runs \\\n  -H "Authorization: Bearer $(weft token)" \\\n  -H 'Content-Type: application/json' -H 'Idempotency-Key: 2026-01-31' -d '{"input": {}}'`}</pre>
        </section>
        {me.value?.role === 'admin' && me.value.user !== null ? <People /> : null}
        {me.value?.role === 'admin' ? <Audit open={me.value.user === null} /> : null}
        {server.value?.signed_in ? <Session me={me.value} /> : null}
        <section aria-labelledby="set-about">
          <h2 id="set-about">About</h2>
          <dl className="readable">
            <div>
              <dt>weft</dt>
              <dd data-testid="weft-version">
                {server.value === null ? (server.error ? 'version unknown' : '') : `version ${server.value.version}`}
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
      </main>
    </div>
  )
}
