// Stored secrets, for admins: a value can be set and replaced, and is never shown.

import { useState, type ReactElement } from 'react'
import type { SecretView } from '../../api/schemas'
import { secrets } from '../../net/secrets'
import type { FieldIds } from '../../forms/fields/FieldShell'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { SecretInput } from '../../ui/SecretInput'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { DeleteDialog } from './DeleteDialog'
import { EditDialog } from './EditDialog'
import { CodeInput, Part } from './form'
import { ACTIONS, codes, LastUsed, ListPage, type Column } from './ListPage'

type Shown = { act: 'set'; secret: SecretView | null } | { act: 'delete'; secret: SecretView }

export function Secrets(): ReactElement {
  const stored = useData(secrets.list, [])
  const [shown, setShown] = useState<Shown | null>(null)
  const close = (): void => setShown(null)
  const columns: Column<SecretView>[] = [
    {
      name: 'Name',
      cell: (secret) => (
        <>
          <code>{secret.name}</code> <span className="label">v{secret.version}</span>
          {problemsOf(secret).map((text) => (
            <span key={text} className="settings__wrong">
              {text}
            </span>
          ))}
        </>
      ),
    },
    {
      name: 'Hosts',
      className: 'settings__lines',
      cell: ({ hosts }) => (hosts.length ? codes(hosts) : 'None: it cannot be sent anywhere'),
    },
    {
      name: 'Places',
      className: 'settings__lines',
      cell: ({ places }) => (places.length ? codes(places) : 'Anywhere in a request'),
    },
    { name: 'Last used', cell: ({ last_used_at_ms: used }) => <LastUsed at={used} /> },
    {
      name: 'Set by',
      cell: (secret) => (
        <>
          {secret.created_by.replace(/^user:/, '') || <span className="quiet">Unknown</span>},{' '}
          <Ago at={secret.created_at_ms} />
        </>
      ),
    },
    {
      name: ACTIONS,
      cell: (secret) => (
        <>
          <Button icon="edit" iconOnly changes onClick={() => setShown({ act: 'set', secret })}>
            {`Replace ${secret.name}`}
          </Button>
          <Button icon="trash" iconOnly changes onClick={() => setShown({ act: 'delete', secret })}>
            {`Delete ${secret.name}`}
          </Button>
        </>
      ),
    },
  ]
  return (
    <ListPage
      id="secrets"
      title="Secrets"
      about={
        <>
          Values that workflows read as <code>{'${NAME}'}</code> in requests, and that cannot be shown again. Each is
          sent only to its hosts, and may be bound to places in a request.
        </>
      }
      add={
        <Button icon="plus" changes onClick={() => setShown({ act: 'set', secret: null })}>
          New secret
        </Button>
      }
      data={stored}
      label="Secrets"
      widths="secrets__row"
      columns={columns}
      rows={stored.value ?? []}
      keyOf={({ name }) => name}
      empty="No secret is stored"
    >
      {shown?.act === 'set' ? (
        <SecretDialog
          secret={shown.secret}
          names={(stored.value ?? []).map((each) => each.name)}
          onDone={stored.reload}
          onClose={close}
        />
      ) : null}
      {shown?.act === 'delete' ? (
        <DeleteDialog
          what={`the secret ${shown.secret.name}`}
          act={() => secrets.delete(shown.secret.name)}
          onDone={stored.reload}
          onClose={close}
        >
          <p>Blocks that read it fail from now on. The value cannot be restored.</p>
        </DeleteDialog>
      ) : null}
    </ListPage>
  )
}

function problemsOf(secret: SecretView): string[] {
  return [
    ...(secret.readable ? [] : ['This server has not the key that it is encrypted with. Set it again.']),
    ...(secret.in_environment ? ['The environment has a value of this name, which is used instead.'] : []),
  ]
}

interface SecretDialogProps {
  secret: SecretView | null
  names: readonly string[]
  onDone: () => void
  onClose: () => void
}

/** `secret` null: a new one. The value is typed again even to change the hosts or places. */
function SecretDialog({ secret, names, onDone, onClose }: SecretDialogProps): ReactElement {
  const [name, setName] = useState(secret?.name ?? '')
  const [value, setValue] = useState('')
  const [hosts, setHosts] = useState(secret?.hosts.join('\n') ?? '')
  const [places, setPlaces] = useState(secret?.places.join('\n') ?? '')
  const duplicate = secret === null && names.includes(name.trim()) ? 'Another secret has this name. Replace it.' : null
  const why = !name.trim() ? 'Enter a name.' : (duplicate ?? (value ? null : 'Enter the value.'))
  const send = async (): Promise<void> => {
    await secrets.put(name.trim(), { value, hosts: listed(hosts), places: listed(places) })
    onDone()
    toast(`Stored the secret ${name.trim()}`, 'ok')
  }
  return (
    <EditDialog
      title={secret ? `Replace ${secret.name}` : 'New secret'}
      act={secret ? 'Replace' : 'Store secret'}
      testId="secret-form"
      why={why}
      fields={['name', 'value', 'hosts', 'places']}
      onSend={send}
      onClose={onClose}
    >
      {(found) => (
        <>
          {secret ? null : (
            <Part name="name" label="Name" needed found={found} error={duplicate} about="Capital letters, digits and _">
              {(ids) => <CodeInput ids={ids} testId="secret-name" value={name} onChange={setName} />}
            </Part>
          )}
          <Part
            name="value"
            label={secret ? 'New value' : 'Value'}
            needed
            found={found}
            about="At least 8 characters. It cannot be shown again."
          >
            {(ids) => <SecretInput ids={ids} testId="secret-value" what="value" value={value} onChange={setValue} />}
          </Part>
          <Part
            name="hosts"
            label="Hosts"
            found={found}
            about="One on each line, such as api.example.com (HTTPS on port 443), *.example.com:8443 or http://127.0.0.1:8080. Without hosts it cannot be sent anywhere."
          >
            {(ids) => <Lines ids={ids} testId="secret-hosts" value={hosts} onChange={setHosts} />}
          </Part>
          <Part
            name="places"
            label="Places in a request"
            found={found}
            about="One on each line: header:Authorization, query:key, path or body. Without places it may stand anywhere."
          >
            {(ids) => <Lines ids={ids} testId="secret-places" value={places} onChange={setPlaces} />}
          </Part>
        </>
      )}
    </EditDialog>
  )
}

/** The entries of a text, one on each line or separated by commas. */
const listed = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean)

interface LinesProps {
  ids: FieldIds
  testId: string
  value: string
  onChange: (value: string) => void
}

function Lines({ ids, testId, value, onChange }: LinesProps): ReactElement {
  return (
    <textarea
      id={ids.control}
      className="mono"
      data-testid={testId}
      rows={3}
      autoComplete="off"
      spellCheck={false}
      aria-invalid={ids.invalid || undefined}
      aria-describedby={ids.describedBy}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
