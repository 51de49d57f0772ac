// What every block has: attempts, time limit, what happens when it fails, when it is left out, which group and limit it shares,
// where its output is stored, whether it is on.

import type { ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import type { JsonSchema, Limit, Policy, Retry } from '../../api/types'
import { escapePointer } from '../../refs/parse'
import { dispatch } from '../../state/doc'
import { Field } from '../../forms/fields/Field'
import { useFieldScope } from '../../forms/fields/scope'

type PolicyChange = { [K in keyof Policy]?: Policy[K] | undefined }

const RETRY: Record<string, JsonSchema> = {
  max_attempts: {
    title: 'Max attempts',
    description: 'Including the first one. Leave empty for the default of the block type.',
    type: 'integer',
    minimum: 1,
    maximum: 100,
  },
  backoff: {
    title: 'Delay',
    enum: ['fixed', 'linear', 'exponential'],
    'x-titles': { fixed: 'Fixed', linear: 'Linear', exponential: 'Exponential' },
    default: 'exponential',
  },
  initial_ms: { title: 'First delay (ms)', type: 'integer', default: 1000 },
  factor: { title: 'Factor', type: 'number', default: 2 },
  max_ms: { title: 'Max delay (ms)', type: 'integer', default: 300_000 },
  jitter: { title: 'Jitter', type: 'number', default: 0.25, description: 'Random part of the delay, from 0 to 1.' },
}

const LIMIT: Record<keyof Limit, JsonSchema> = {
  key: {
    title: 'Limit key',
    type: 'string',
    description: 'Blocks with the same key share one limit, in all runs and workflows. For example: crm <input.region>',
  },
  at_most: {
    title: 'At most',
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
    description: 'The number of blocks that may run at the same time. Others wait for their turn.',
  },
}

export function PolicySection({ id }: { id: string }): ReactElement {
  const { doc, readonly, specs } = useFieldScope()
  const block = doc.blocks[id]!
  const policy = block.policy ?? {}
  const retry: Retry = policy.retry ?? {}
  const spec = specs.get(block.type)
  const runners = spec?.runners ?? ['inline']
  const limited = policy.limit || !(spec?.container || spec?.trigger)
  const groups = Object.keys(doc.settings?.groups ?? {})
  const pointer = `/blocks/${escapePointer(id)}/policy`
  const put = (change: PolicyChange, key: string): void =>
    void dispatch({ type: 'setPolicy', id, policy: change }, `policy ${id} ${key}`)
  const putRetry = (name: string, value: Json | undefined): void => {
    const { [name as keyof Retry]: _, ...rest } = retry
    const next = value === undefined ? rest : { ...rest, [name]: value }
    put({ retry: Object.keys(next).length ? (next as Retry) : undefined }, name)
  }
  const putLimit = (name: keyof Limit, value: Json | undefined): void => {
    const { [name]: _, ...rest } = policy.limit ?? {}
    const next: Limit = value === undefined ? rest : { at_most: 1, ...rest, [name]: value }
    put({ limit: next.key === undefined ? undefined : next }, `limit ${name}`)
  }
  const limitField = (name: keyof Limit): ReactElement => (
    <Field
      type={null}
      name={name}
      schema={LIMIT[name]}
      value={policy.limit?.[name]}
      refers={name === 'key'}
      path={`policy.limit.${name}`}
      pointer={`${pointer}/limit/${name}`}
      onChange={(value) => putLimit(name, value)}
    />
  )
  const field = (name: keyof Policy & string, schema: JsonSchema): ReactElement => (
    <Field
      type={null}
      name={name}
      schema={schema}
      value={policy[name] as Json | undefined}
      refers={false}
      path={`policy.${name}`}
      pointer={`${pointer}/${name}`}
      onChange={(value) => put({ [name]: value } as PolicyChange, name)}
    />
  )
  const retryField = (name: string): ReactElement => (
    <Field
      key={name}
      type={null}
      name={name}
      schema={RETRY[name]!}
      value={retry[name as keyof Retry] as Json | undefined}
      refers={false}
      path={`policy.retry.${name}`}
      pointer={`${pointer}/retry/${name}`}
      onChange={(value) => putRetry(name, value)}
    />
  )
  const used = Object.keys(policy).length > 0 || !!block.assign || block.enabled === false
  return (
    <details className="fold" open={used || undefined} data-testid="policy">
      <summary>Error handling & limits</summary>
      <div className="inspector__fields">
        {retryField('max_attempts')}
        {retry.max_attempts === undefined && !policy.retry ? null : (
          <div className="twocol">
            {['backoff', 'initial_ms', 'factor', 'max_ms']
              .filter((name) => name !== 'factor' || (retry.backoff ?? 'exponential') === 'exponential')
              .map(retryField)}
            {retryField('jitter')}
          </div>
        )}
        {field('timeout_s', { title: 'Timeout (seconds)', type: 'number', description: 'For each attempt.' })}
        {policy.heartbeat_timeout_ms === undefined && block.type !== 'python'
          ? null
          : field('heartbeat_timeout_ms', {
              title: 'Heartbeat timeout (ms)',
              type: 'integer',
              minimum: 100,
              description: 'An attempt that sends no heartbeat for this long fails and is retried.',
            })}
        {field('on_error', {
          title: 'When this block fails',
          enum: ['fail', 'continue'],
          'x-titles': { fail: 'Use the error branch, or fail the run', continue: 'Continue with null' },
          default: 'fail',
        })}
        {field('skip_if', {
          title: 'Skip if',
          type: 'string',
          'x-weft': 'expression',
          description: 'A JavaScript expression. If it is true, the block is skipped and the run continues after it.',
        })}
        {runners.length > 1 || policy.runner
          ? field('runner', {
              title: 'Runs in',
              enum: runners,
              'x-titles': { inline: 'The server', process: 'A child process', dask: 'A Dask cluster' },
              description: 'Choose a child process or a cluster for functions that compute for long.',
              default: 'inline',
            })
          : null}
        {limited ? limitField('key') : null}
        {policy.limit ? limitField('at_most') : null}
        {groups.length || policy.group
          ? field('group', {
              title: 'Concurrency group',
              enum: groups,
              description:
                'Limits how many blocks of the group run at the same time. Set the limit in the workflow settings.',
            })
          : null}
        <Field
          type={null}
          name="assign"
          schema={{
            title: 'Save output to variable',
            type: 'string',
            description: 'A workflow variable, for example $.customer.',
          }}
          value={block.assign ?? undefined}
          path="assign"
          pointer={`/blocks/${escapePointer(id)}/assign`}
          onChange={(value) =>
            dispatch(
              { type: 'setBlock', id, fields: { assign: typeof value === 'string' ? value : undefined } },
              `assign ${id}`,
            )
          }
        />
        {readonly ? null : (
          <Field
            type={null}
            name="enabled"
            schema={{ title: 'Enabled', type: 'boolean', default: true }}
            value={block.enabled === false ? false : undefined}
            path="enabled"
            onChange={(value) => dispatch({ type: 'setEnabled', ids: [id], enabled: value !== false })}
          />
        )}
      </div>
    </details>
  )
}
