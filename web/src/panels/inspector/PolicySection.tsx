// What every block has: attempts, time limit, what happens when it fails, when it is left out, which group it shares, where its
// output is stored, whether it is on.

import { type ReactElement } from 'react'
import type { Json, JsonSchema, Policy, Retry } from '../../net/types'
import { escapePointer } from '../../refs/parse'
import { dispatch } from '../../state/doc'
import { Field } from '../fields/Field'
import { useFieldScope } from '../fields/scope'

type PolicyChange = { [K in keyof Policy]?: Policy[K] | undefined }

const RETRY: Record<string, JsonSchema> = {
  max_attempts: { title: 'Attempts', description: 'In all. Left empty: 3 for blocks with effects, else 1.', type: 'integer', minimum: 1, maximum: 100 },
  backoff: { title: 'Pauses', enum: ['fixed', 'linear', 'exponential'], default: 'exponential' },
  initial_ms: { title: 'First pause (ms)', type: 'integer', default: 1000 },
  factor: { title: 'Grows by', type: 'number', default: 2 },
  max_ms: { title: 'Longest pause (ms)', type: 'integer', default: 300_000 },
  jitter: { title: 'Random share', type: 'number', default: 0.25, description: '0 to 1: how much pauses differ, so that many do not come at once.' },
}

export function PolicySection({ id }: { id: string }): ReactElement {
  const { doc, readonly } = useFieldScope()
  const block = doc.blocks[id]!
  const policy = block.policy ?? {}
  const retry: Retry = policy.retry ?? {}
  const groups = Object.keys(doc.settings?.groups ?? {})
  const pointer = `/blocks/${escapePointer(id)}/policy`
  const put = (change: PolicyChange, key: string): void => void dispatch({ type: 'setPolicy', id, policy: change }, `policy ${id} ${key}`)
  const putRetry = (name: string, value: Json | undefined): void => {
    const { [name as keyof Retry]: _, ...rest } = retry
    const next = value === undefined ? rest : { ...rest, [name]: value }
    put({ retry: Object.keys(next).length ? (next as Retry) : undefined }, name)
  }
  const field = (name: keyof Policy & string, schema: JsonSchema): ReactElement => (
    <Field
      type={null} name={name} schema={schema} value={policy[name] as Json | undefined} refers={false} path={`policy.${name}`} pointer={`${pointer}/${name}`}
      onChange={(value) => put({ [name]: value } as PolicyChange, name)}
    />
  )
  const retryField = (name: string): ReactElement => (
    <Field
      key={name} type={null} name={name} schema={RETRY[name]!} value={retry[name as keyof Retry] as Json | undefined} refers={false} path={`policy.retry.${name}`} pointer={`${pointer}/retry/${name}`}
      onChange={(value) => putRetry(name, value)}
    />
  )
  const used = Object.keys(policy).length > 0 || !!block.assign || block.enabled === false
  return (
    <details className="fold" open={used || undefined} data-testid="policy">
      <summary>When it fails, limits, result</summary>
      <div className="inspector__fields">
        {retryField('max_attempts')}
        {retry.max_attempts === undefined && !policy.retry ? null : (
          <div className="twocol">{['backoff', 'initial_ms', 'factor', 'max_ms'].filter((name) => name !== 'factor' || (retry.backoff ?? 'exponential') === 'exponential').map(retryField)}{retryField('jitter')}</div>
        )}
        {field('timeout_s', { title: 'Time limit (seconds)', type: 'number', description: 'For one attempt.' })}
        {field('on_error', {
          title: 'When it has failed', enum: ['fail', 'continue'], default: 'fail', description: 'fail: goes by the error handle, or fails the run. continue: goes on, the output is null.',
        })}
        {field('skip_if', { title: 'Leave out if', type: 'string', 'x-weft': 'expression', description: 'JavaScript. When true the block does not run and the way goes on behind it.' })}
        {groups.length || policy.group ? field('group', { title: 'Group', enum: groups, description: 'Blocks of a group run only so many at a time; see the settings of the workflow.' }) : null}
        <Field
          type={null} name="assign" schema={{ title: 'Store the output in', type: 'string', description: 'A place in the workflow variables, such as $.customer.' }} value={block.assign ?? undefined} path="assign"
          pointer={`/blocks/${escapePointer(id)}/assign`}
          onChange={(value) => dispatch({ type: 'setBlock', id, fields: { assign: typeof value === 'string' ? value : undefined } }, `assign ${id}`)}
        />
        {readonly ? null : (
          <Field
            type={null} name="enabled" schema={{ title: 'Part of runs', type: 'boolean', default: true }} value={block.enabled === false ? false : undefined} path="enabled"
            onChange={(value) => dispatch({ type: 'setEnabled', ids: [id], enabled: value !== false })}
          />
        )}
      </div>
    </details>
  )
}
