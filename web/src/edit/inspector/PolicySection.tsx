// What every block has: attempts, time limit, what happens when it fails, when it is left out, which group and limit it shares,
// where its output is stored, whether it is on.

import type { ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import type { JsonSchema, Limit, Policy, Retry } from '../../api/types'
import { escapePointer } from '../../refs/parse'
import { dispatch } from '../../state/doc'
import { Field } from '../../forms/fields/Field'
import { useFieldScope } from '../../forms/fields/scope'
import { LIMIT, POLICY, RETRY } from './policy'

type PolicyChange = { [K in keyof Policy]?: Policy[K] | undefined }

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
  const field = (name: keyof typeof POLICY, more: JsonSchema = {}): ReactElement => (
    <Field
      type={null}
      name={name}
      schema={{ ...POLICY[name], ...more }}
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
        {field('timeout_s')}
        {policy.heartbeat_timeout_ms === undefined && block.type !== 'python' ? null : field('heartbeat_timeout_ms')}
        {field('on_error')}
        {field('skip_if')}
        {runners.length > 1 || policy.runner ? field('runner', { enum: runners }) : null}
        {limited ? limitField('key') : null}
        {policy.limit ? limitField('at_most') : null}
        {groups.length || policy.group ? field('group', { enum: groups }) : null}
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
