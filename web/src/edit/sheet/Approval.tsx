// The question about a call, at its place in the talk: what will happen, with the real address and arguments, and the answer.

import { useEffect, useMemo, useState, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { announce } from '../../a11y'
import { isObject } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema, WaitView } from '../../api/types'
import { api } from '../../net/api'
import { isTextField } from '../../keys'
import type { NodeState } from '../../run'
import { runStore } from '../../state/live'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { roughly } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { messageOf } from '../../ui/words'
import { defaultsOf, fieldsOf, readTyped, type Typed } from '../../forms/fields/form'
import { SchemaForm } from '../../forms/fields/SchemaForm'
import { useFieldScope } from '../../forms/fields/scope'
import { effectIn, filledWith } from './effect'
import { argsText, type Call } from '../../run/talk'

export function Approval({
  id,
  node,
  call,
  reason,
}: {
  id: string
  node: NodeState
  call: Call
  reason: string
}): ReactElement {
  const { doc, specs } = useFieldScope()
  const wait = useWaitOf(node, call)
  const own = toolOf(doc.blocks[id]?.params, call.name)
  const now = useClock(1000)
  const fields = useMemo(() => fieldsOf(schemaWithout(wait?.schema ?? null, 'reason')), [wait])
  const [typed, setTyped] = useState<Typed>({})
  const { values, errors } = readTyped(fields, { ...defaultsOf(fields), ...typed })
  const args = { ...call.args, ...values }
  const happens = whatHappens(own, call.name, args, (type) => specs.get(type))
  const [refusing, setRefusing] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState('')
  const mayNot = useReadOnly()
  const cursor = useStore(runStore, (state) => state.cursor)
  const why =
    mayNot ??
    (cursor !== 'live' ? 'The Tape shows an earlier moment: go to the latest event to answer.' : null) ??
    (wait ? (busy ? 'Sending' : null) : 'Loading the question')
  const send = async (action: 'approve' | 'reject'): Promise<void> => {
    if (!wait || why) return
    if (action === 'approve' && Object.keys(errors).length) return setTrouble(Object.values(errors)[0]!)
    setBusy(true)
    setTrouble('')
    try {
      await api.answer(wait, action, action === 'approve' ? values : { reason: refusing ?? '' })
      announce(action === 'approve' ? 'Allowed' : 'Refused')
    } catch (error) {
      setTrouble(messageOf(error))
    } finally {
      setBusy(false)
    }
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.key.toLowerCase() !== 'a' || isTextField(event.target) || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    void send('approve')
  }
  return (
    <section className="approval" aria-label={`Question about ${call.name}`} data-testid="approval" onKeyDown={onKey}>
      <p className="approval__head">
        <Icon name="waiting" size={13} />
        Waits for a person
        <span className="wsheet__gap" />
        {wait?.expires_at_ms ? `Expires in ${roughly(Math.max(0, wait.expires_at_ms - now))}` : null}
      </p>
      <h4 data-testid="approval-happens">{happens}</h4>
      <dl className="approval__facts">
        <dt>Calls</dt>
        <dd>
          {call.name} <span className="mono">{argsText(args as JsonObject)}</span>
        </dd>
        {typeof own?.description === 'string' && own.description ? (
          <>
            <dt>Does</dt>
            <dd>{own.description}</dd>
          </>
        ) : null}
        {reason ? (
          <>
            <dt>Its reason</dt>
            <dd>{reason}</dd>
          </>
        ) : null}
      </dl>
      {fields.length ? (
        <SchemaForm
          fields={fields}
          typed={{ ...defaultsOf(fields), ...typed }}
          onChange={setTyped}
          errors={errors}
          sent={trouble !== ''}
        />
      ) : null}
      {refusing !== null ? (
        <label className="approval__reason">
          Reason, which the model gets
          <input
            className="field"
            data-testid="refuse-reason"
            value={refusing}
            maxLength={2000}
            onChange={(event) => setRefusing(event.target.value)}
          />
        </label>
      ) : null}
      {trouble ? (
        <p className="finding" data-severity="error" role="alert">
          {trouble}
        </p>
      ) : null}
      <p className="approval__buttons">
        {refusing === null ? (
          <>
            <Button kind="primary" keys="A" data-testid="allow" why={why} onClick={() => void send('approve')}>
              Allow
            </Button>
            <Button data-testid="refuse" why={why} onClick={() => setRefusing('')}>
              Refuse with a reason
            </Button>
          </>
        ) : (
          <>
            <Button kind="primary" data-testid="refuse-send" why={why} onClick={() => void send('reject')}>
              Refuse
            </Button>
            <Button onClick={() => setRefusing(null)}>Back</Button>
          </>
        )}
        <span className="wsheet__gap" />
        <span>Nothing has been sent yet</span>
      </p>
    </section>
  )
}

export function toolOf(params: JsonObject | undefined, name: string): JsonObject | undefined {
  const list = Array.isArray(params?.tools) ? params.tools : []
  const fits = (each: Json): boolean =>
    isObject(each) && (each.name === name || (isObject(each.mcp) && name.startsWith(`${String(each.name)}_`)))
  return list.find(fits) as JsonObject | undefined
}

/** "Sends POST https://shop.example/refund/1042": what an approval causes. */
export function whatHappens(
  own: JsonObject | undefined,
  name: string,
  args: Readonly<Record<string, Json>>,
  specOf: (type: string) => Parameters<typeof effectIn>[2],
): string {
  if (!own || own.function) return `Calls ${name}`
  if (own.workflow) return `Starts a run of ${String(own.workflow)} with ${argsText(args as JsonObject) || 'no input'}`
  if (isObject(own.mcp)) return `Calls ${name} on ${hostOf(String(own.mcp.url ?? own.mcp.server ?? 'its server'))}`
  const type = String(own.block ?? '')
  const params = isObject(own.params) ? (own.params as JsonObject) : {}
  const { verb, what } = effectIn(type, params, specOf(type), filledWith(args))
  return `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${what}`
}

function hostOf(address: string): string {
  try {
    return new URL(address).host
  } catch {
    return address
  }
}

function schemaWithout(schema: JsonSchema | null, name: string): JsonSchema | null {
  if (!schema?.properties) return schema
  const { [name]: _, ...properties } = schema.properties
  return { ...schema, properties }
}

/** The wait that the approval opened: its form, and what answers it. */
function useWaitOf(node: NodeState, call: Call): WaitView | null {
  const run = useStore(runStore, (state) => state.id)
  const open = node.waits.find((wait) => wait.step === call.approval?.n) ?? node.wait
  const [view, setView] = useState<WaitView | null>(null)
  useEffect(() => {
    if (run === null || !open) return setView(null)
    let current = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = (): void => {
      api.waits('pending', run).then(
        (waits) => current && setView(waits.find((wait) => wait.id === open.id) ?? null),
        () => current && (timer = setTimeout(load, 3000)),
      )
    }
    load()
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [run, open?.id])
  return view
}
