// The services that workflows reach, and the dialog that makes a connector document of an OpenAPI description.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { download } from '../../actions/files'
import { connectors } from '../../net/connectors'
import type { ConnectorView, JsonObject, Offered } from '../../api/schemas'
import { loadSpecs, reloadSpecs, specsStore } from '../../state/doc'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon, iconOf } from '../../ui/icons'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { DeleteDialog } from './DeleteDialog'
import { refusalOf } from './EditDialog'
import { Refused } from './ListPage'
import './connectors.css'

/** `admin`: may add and delete. */
export function Connectors({ admin }: { admin: boolean }): ReactElement {
  const list = useStore(specsStore, (s) => s.list).filter((spec) => spec.category === 'connector')
  const added = useData(connectors.added, [])
  const [open, setOpen] = useState(false)
  const [doomed, setDoomed] = useState<ConnectorView | null>(null)
  const reload = (): void => {
    added.reload()
    void reloadSpecs().catch((error: unknown) => toast(messageOf(error), 'err'))
  }
  useEffect(() => void loadSpecs().catch(() => undefined), [])
  return (
    <section aria-labelledby="set-connectors" id="connectors">
      <div className="settings__head">
        <h2 id="set-connectors">Connectors</h2>
        {admin ? (
          <Button icon="upload" changes onClick={() => setOpen(true)}>
            Import OpenAPI
          </Button>
        ) : null}
      </div>
      <p className="quiet">Services with a block of their own, in the palette of the editor.</p>
      <ul className="connectors">
        {list.map((spec) => {
          const own = added.value?.find((each) => each.type === spec.type)
          return (
            <li key={spec.type} title={spec.description}>
              <Icon name={iconOf(spec.type, spec.icon)} /> {spec.title}
              {own && admin ? (
                <Button icon="trash" iconOnly changes onClick={() => setDoomed(own)}>{`Delete ${own.title}`}</Button>
              ) : null}
            </li>
          )
        })}
      </ul>
      {open ? <ImportDialog admin={admin} onAdded={reload} onClose={() => setOpen(false)} /> : null}
      {doomed ? (
        <DeleteDialog
          what={`the connector ${doomed.title}`}
          act={() => connectors.delete(doomed.service)}
          onDone={reload}
          onClose={() => setDoomed(null)}
        >
          <p>
            Blocks of the type <code>{doomed.type}</code> fail from now on.
          </p>
        </DeleteDialog>
      ) : null}
    </section>
  )
}

interface ImportProps {
  admin: boolean
  onAdded: () => void
  onClose: () => void
}

function ImportDialog({ admin, onAdded, onClose }: ImportProps): ReactElement {
  const [text, setText] = useState('')
  const [url, setUrl] = useState('')
  const [filter, setFilter] = useState('')
  const [offered, setOffered] = useState<readonly Offered[] | null>(null)
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [wrong, setWrong] = useState<string | null>(null)
  const ask = async (act: (description: JsonObject) => Promise<void>): Promise<void> => {
    setWrong(null)
    let description: unknown
    try {
      description = JSON.parse(text)
    } catch {
      return setWrong('The description is not valid JSON. Convert a description in YAML to JSON first.')
    }
    try {
      await act(description as JsonObject)
    } catch (error) {
      setWrong(refusalOf(error).message)
    }
  }
  const list = (): Promise<void> =>
    ask(async (description) => setOffered((await connectors.fromOpenApi({ description })).operations))
  const make = (use: (document: JsonObject, service: string) => Promise<void>): Promise<void> =>
    ask(async (description) => {
      const asked = { description, operations: [...chosen], ...(url.trim() ? { base_url: url.trim() } : {}) }
      const { connector } = await connectors.fromOpenApi(asked)
      if (connector === null) return
      await use(connector as JsonObject, String(connector.service))
      onClose()
    })
  const add = (): Promise<void> =>
    make(async (document, service) => {
      await connectors.put(service, document)
      onAdded()
      toast(`Added the connector ${String(document.title)}. It is in the palette.`, 'ok')
    })
  const save = (): Promise<void> =>
    make(async (document, service) => {
      download(`${service}.json`, `${JSON.stringify(document, null, 2)}\n`, 'application/json')
      toast('Downloaded the connector. `weft connector add FILE` adds it to a server.', 'ok')
    })
  const toggle = (id: string): void => {
    const next = new Set(chosen)
    if (!next.delete(id)) next.add(id)
    setChosen(next)
  }
  const words = filter.trim().toLowerCase()
  const shown = (offered ?? []).filter((each) =>
    `${each.method} ${each.path} ${each.title} ${each.tag ?? ''}`.toLowerCase().includes(words),
  )
  return (
    <Dialog
      title="Import OpenAPI"
      open
      wide
      onClose={onClose}
      foot={
        offered === null ? (
          <Button
            kind="primary"
            why={text.trim() ? null : 'Paste a description or choose its file.'}
            onClick={() => void list()}
          >
            List operations
          </Button>
        ) : (
          <>
            <Button onClick={() => setOffered(null)}>Back</Button>
            <Button icon="download" why={chosen.size ? null : 'Choose an operation.'} onClick={() => void save()}>
              Download
            </Button>
            <Button
              kind="primary"
              why={!chosen.size ? 'Choose an operation.' : admin ? null : 'Only admins may add connectors.'}
              onClick={() => void add()}
            >
              {`Add connector (${chosen.size})`}
            </Button>
          </>
        )
      }
    >
      <Refused error={wrong} />
      {offered === null ? (
        <div className="openapi">
          <label htmlFor="openapi-text">OpenAPI 3 description in JSON</label>
          <textarea
            id="openapi-text"
            rows={10}
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <label htmlFor="openapi-file">Or choose its file</label>
          <input
            id="openapi-file"
            type="file"
            accept=".json,application/json"
            onChange={(event) => void event.target.files?.[0]?.text().then(setText)}
          />
        </div>
      ) : (
        <div className="openapi">
          <label htmlFor="openapi-filter">Find an operation</label>
          <input
            id="openapi-filter"
            type="search"
            value={filter}
            autoComplete="off"
            onChange={(event) => setFilter(event.target.value)}
          />
          <ul className="openapi__list" aria-label="Operations">
            {shown.map((each) => (
              <li key={each.id}>
                <label>
                  <input
                    type="checkbox"
                    checked={chosen.has(each.id)}
                    disabled={each.problem !== null}
                    onChange={() => toggle(each.id)}
                  />
                  <span>{each.title}</span>
                  <code>
                    {each.method} {each.path}
                  </code>
                  {each.problem ? <span className="quiet">Not usable: {each.problem}</span> : null}
                </label>
              </li>
            ))}
          </ul>
          {shown.length ? null : <p className="quiet">No results</p>}
          <label htmlFor="openapi-url">Address of the service, if the description does not say it</label>
          <input
            id="openapi-url"
            type="url"
            placeholder="https://"
            value={url}
            onChange={(event) => setUrl(event.target.value)}
          />
        </div>
      )}
    </Dialog>
  )
}
