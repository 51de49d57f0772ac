// What one task asks for: the field of a block, with its search in the service; a secret; or the way to do it elsewhere.

import { useState, type ReactElement } from 'react'
import type { Json, Task } from '../../api/schemas'
import { goToFinding } from '../../actions/findings'
import { Field } from '../../forms/fields/Field'
import { FieldShell } from '../../forms/fields/FieldShell'
import { FieldScopeContext } from '../../forms/fields/scope'
import { secrets } from '../../net/secrets'
import { dispatch, docStore, recheck, specsOf } from '../../state/doc'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { useMayNot } from '../../ui/rights'
import { SecretInput } from '../../ui/SecretInput'
import { messageOf, sentence } from '../../ui/words'
import { useFieldScopeOf } from '../inspector/useScope'
import { paramAt } from './tasks'

const BUILD = 'weft python build'

export function TaskBody({ task }: { task: Task }): ReactElement {
  const pointers = task.pointers ?? []
  switch (task.kind) {
    case 'secret':
      return <SecretTask task={task} />
    case 'python':
      return (
        <>
          <p>Run this once on the machine of the server. It takes half a minute.</p>
          <div className="setup__row">
            <code>{BUILD}</code>
            <Button icon="copy" iconOnly kind="bare" onClick={() => void copyText(BUILD, 'Copied command')}>
              Copy command
            </Button>
            <Button onClick={() => void recheck()}>Check again</Button>
          </div>
        </>
      )
    case 'replace':
      return (
        <>
          <p>{task.hint}</p>
          <Button onClick={() => goTo(task)}>Show it</Button>
        </>
      )
    case 'model':
      return (
        <>
          {task.hint ? <p>{task.hint}</p> : null}
          <ParamField pointers={pointers} />
          {task.name ? <ParamField pointers={pointers.map((each) => each.replace(/[^/]*$/, 'connection'))} /> : null}
          {task.hint ? <Button onClick={() => void recheck()}>Check again</Button> : null}
        </>
      )
    default:
      return (
        <>
          <ParamField pointers={pointers} />
          <Button kind="bare" onClick={() => goTo(task)}>
            {task.blocks.length > 1 ? `Show the first of ${task.blocks.length} blocks` : 'Show the block'}
          </Button>
        </>
      )
  }
}

function goTo(task: Task): void {
  const pointer = task.pointers?.[0] ?? ''
  goToFinding(
    docStore.getState().doc,
    { code: '', severity: 'warning', pointer, message: '', block: task.blocks[0] ?? null },
    specsOf(),
  )
}

/** The field of the first place; what is chosen goes to all of them. */
function ParamField({ pointers }: { pointers: readonly string[] }): ReactElement | null {
  const block = pointers[0]?.split('/')[2]?.replaceAll('~1', '/').replaceAll('~0', '~') ?? null
  const scope = useFieldScopeOf('edit', block)
  const found = pointers.flatMap((pointer) => paramAt(scope.doc, scope.specs, pointer) ?? [])
  const first = found[0]
  if (!first) return null
  const change = (value: Json | undefined): void => {
    const commands = found.map(({ block: id, path }) => ({ type: 'setParam' as const, id, path, value }))
    const changed = dispatch({ type: 'batch', label: `set ${first.name}`, commands }, `setup ${pointers[0]}`)
    // The same name: the connection is there now.
    if (!changed) void recheck()
  }
  return (
    <FieldScopeContext value={scope}>
      <Field
        type={first.type}
        name={first.name}
        schema={first.schema}
        value={first.value}
        params={first.params}
        path={first.path.join('.')}
        required
        onChange={change}
      />
    </FieldScopeContext>
  )
}

function SecretTask({ task }: { task: Task }): ReactElement {
  const [value, setValue] = useState('')
  const [hosts, setHosts] = useState('')
  const [wrong, setWrong] = useState<string | null>(null)
  const why = useMayNot('admin') ?? (value ? null : 'Enter the value')
  const store = async (): Promise<void> => {
    setWrong(null)
    try {
      await secrets.put(task.name ?? '', { value, hosts: hosts.split(/[\s,]+/).filter(Boolean), places: [] })
      await recheck()
    } catch (error) {
      setWrong(sentence(messageOf(error)))
    }
  }
  return (
    <>
      <FieldShell label={task.name ?? ''} required error={wrong}>
        {(ids) => <SecretInput ids={ids} testId="setup-secret" what="value" value={value} onChange={setValue} />}
      </FieldShell>
      <FieldShell label="Hosts" description="Where it may be sent to, such as api.example.com.">
        {(ids) => (
          <input
            id={ids.control}
            type="text"
            value={hosts}
            autoComplete="off"
            spellCheck={false}
            aria-describedby={ids.describedBy}
            onChange={(event) => setHosts(event.target.value)}
          />
        )}
      </FieldShell>
      <Button kind="primary" why={why} data-testid="setup-store" onClick={() => void store()}>
        Store
      </Button>
    </>
  )
}
