// Input and output of the block, in the iteration and at the event that are shown.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import type { Json, JsonObject } from '../../api/schemas'
import type { ErrorInfo, NodeDetail } from '../../api/types'
import { nameOf, routeTitle } from '../../document/document'
import { runStore } from '../../state/live'
import { isDecided, type NodeState } from '../../run'
import { refName } from '../../refs/scope'
import { EmptyState } from '../../ui/EmptyState'
import { ValueTree } from '../../ui/ValueTree'
import { useFieldScope } from '../../forms/fields/scope'
import { selectNode } from '../../actions/jump'
import { Attempts, ErrorCard, Section, Value } from './parts'
import { Steps } from './Steps'
import { useNodeDetail } from '../../watch/run/useNodeDetail'

interface TabProps {
  id: string
  node: NodeState | undefined
}

export function InputTab({ id, node }: TabProps): ReactElement {
  const run = useStore(runStore, (state) => state.id)
  const [attempt, setAttempt] = useAttempt(node)
  const { detail, loading, error } = useNodeDetail(run, node, attempt)
  if (!node) return <NotYet id={id} />
  if (error)
    return (
      <p className="finding" data-severity="error">
        {error}
      </p>
    )
  if (!detail) return loading ? <p className="label">Loading</p> : <EmptyState title="No input" />
  const href = api.nodeFile(run!, node.key, 'input', { seq: node.lastSeq, ...(attempt === null ? {} : { attempt }) })
  return (
    <>
      <Attempts attempts={node.attempts} shown={attempt} onShow={setAttempt} />
      {detail.input_error ? (
        <Section label="The input could not be resolved">
          <ErrorCard error={detail.input_error} />
        </Section>
      ) : null}
      {detail.input === null && !detail.input_truncated ? (
        detail.input_error ? null : (
          <EmptyState title={node.status === 'skipped' ? 'Skipped' : 'No input'} />
        )
      ) : (
        <Filled detail={detail} href={href} name={`${node.block}-input`} />
      )}
    </>
  )
}

/** The params as they were filled in; programs and expressions as they are written, with what they read beside them. */
function Filled({ detail, href, name }: { detail: NodeDetail; href: string; name: string }): ReactElement {
  const read: JsonObject = {}
  const shown = withSource(detail.input, read)
  return (
    <>
      {Object.keys(read).length ? (
        <Section label="References in code">
          <ValueTree value={read} name={`${name}-read`} label="References in code" height={240} />
        </Section>
      ) : null}
      <Section label="Resolved input">
        <Value
          value={shown}
          cut={detail.input_truncated}
          size={detail.input_size}
          preview={detail.input_preview}
          href={href}
          base={undefined}
          name={name}
          label="Input"
        />
      </Section>
    </>
  )
}

/** `{$code, values}` -> the code; its values go to `read`, where a reference means the same for the whole node. */
function withSource(value: Json, read: JsonObject): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withSource(item, read))
  if (typeof value.$code === 'string' && typeof value.values === 'object' && value.values !== null) {
    Object.assign(read, value.values)
    return value.$code
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withSource(item, read)]))
}

export function OutputTab({ id, node }: TabProps): ReactElement {
  const { doc } = useFieldScope()
  const run = useStore(runStore, (state) => state.id)
  const text = useStore(runStore, (state) => (node ? state.live.get(node.key) : undefined))
  const [attempt, setAttempt] = useAttempt(node)
  const inLog = node && node.output !== undefined && node.size === undefined && attempt === null
  // Outputs that are in the log need not be asked for.
  const { detail, loading, error } = useNodeDetail(
    run,
    inLog || !node || (!isDecided(node) && attempt === null) ? undefined : node,
    attempt,
  )
  if (!node) return <NotYet id={id} />
  const shownError: ErrorInfo | null =
    attempt === null ? node.error : (node.attempts.find((each) => each.attempt === attempt)?.error ?? null)
  const value: Json | undefined = inLog
    ? node.output
    : attempt !== null && shownError
      ? undefined
      : (detail?.output ?? undefined)
  const href = api.nodeFile(run!, node.key, 'output', { seq: node.lastSeq, ...(attempt === null ? {} : { attempt }) })
  return (
    <>
      {node.status === 'skipped' ? <Skipped node={node} /> : null}
      {node.status === 'waiting' && node.wait?.kind === 'attention' ? (
        <p className="part__words">
          {node.wait.title || 'An attempt was lost'}.{' '}
          {node.wait.reason === 'code'
            ? 'The run continues as soon as a server has code that fits. The question has both calls and the line.'
            : 'It is not known whether it took effect. Check the result, then choose: run it again, mark it as done, or mark it as failed.'}
        </p>
      ) : node.status === 'waiting' ? (
        (node.waits.length ? node.waits : [node.wait]).map((wait) =>
          wait ? (
            <p className="part__words" key={wait.id}>
              Waiting for {wait.kind === 'child' ? 'another run' : 'an answer'}
              {wait.title ? `: ${wait.title}` : '.'}
            </p>
          ) : null,
        )
      ) : null}
      <Attempts attempts={node.attempts} shown={attempt} onShow={setAttempt} />
      <Steps node={node} />
      {shownError ? (
        <Section label={node.status === 'retrying' ? 'Last error' : 'Error'}>
          <ErrorCard error={shownError} handled={node.handled && attempt === null} />
        </Section>
      ) : null}
      {text !== undefined && !isDecided(node) ? (
        <Section label="Output (streaming)">
          <pre className="rawvalue" aria-live="off">
            {text}
            <span className="caret" />
          </pre>
        </Section>
      ) : null}
      {isLogged(value) && doc.blocks[id]?.type === 'email' ? (
        <p className="part__words" data-testid="mail-logged">
          Not sent: this server writes emails to its log. Set <code>WEFT_MAIL_TRANSPORT=smtp</code> to send them.
        </p>
      ) : null}
      {value !== undefined || detail?.output_truncated ? (
        <Section label="Output">
          <Value
            value={value}
            cut={!inLog && (detail?.output_truncated ?? false)}
            size={detail?.output_size ?? null}
            preview={detail?.output_preview}
            href={href}
            base={refName(doc, id)}
            name={`${node.block}-output`}
            label="Output"
          />
        </Section>
      ) : error ? (
        <p className="finding" data-severity="error">
          {error}
        </p>
      ) : loading ? (
        <p className="label">Loading</p>
      ) : !shownError && node.status !== 'skipped' && node.status !== 'waiting' && text === undefined ? (
        <EmptyState title={isDecided(node) ? 'No output' : 'No output yet'}>
          {node.region ? `${nameOf(doc, id)} returns its results when it finishes.` : null}
        </EmptyState>
      ) : null}
      {node.said !== null && text === undefined ? (
        <Section label="live text">
          <pre className="rawvalue" tabIndex={0} aria-label="Live text">
            {node.said}
          </pre>
        </Section>
      ) : null}
      {node.logs.length ? (
        <Section label="Log">
          <pre className="rawvalue" tabIndex={0} aria-label="Log">
            {node.logs.join('\n')}
          </pre>
        </Section>
      ) : null}
    </>
  )
}

/** What an email block returns when the server has no mail server. */
const isLogged = (value: Json | undefined): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && value.transport === 'log'

function Skipped({ node }: { node: NodeState }): ReactElement {
  const { doc, specs } = useFieldScope()
  const nodes = useStore(runStore, (state) => state.view.nodes)
  const cause = node.because ? nodes.get(node.because.replace(/:(start|end)(?=@|$)/, '')) : undefined
  const words =
    node.reason === 'skip_if'
      ? 'Skipped by “Skip if”. The run continues after this block.'
      : node.reason === 'expired'
        ? 'Skipped: not answered in time.'
        : 'Skipped: branch not taken.'
  return (
    <p className="part__words">
      {words}
      {cause ? (
        <>
          {' '}
          <button type="button" className="linklike" onClick={() => selectNode(cause)}>
            {nameOf(doc, cause.block)}
          </button>
          {cause.route && cause.route !== 'out'
            ? ` took “${routeTitle(doc, cause.block, cause.route, specs)}”`
            : ' did not continue here'}
          .
        </>
      ) : null}
    </p>
  )
}

function NotYet({ id }: { id: string }): ReactElement {
  const { doc } = useFieldScope()
  const over = useStore(runStore, (state) => state.view.finishedAt !== null)
  return (
    <EmptyState title={over ? `${nameOf(doc, id)} did not run` : `${nameOf(doc, id)} has not started`}>
      {over ? 'The run ended before it reached this block.' : 'At the selected time.'}
    </EmptyState>
  )
}

/** Which attempt is looked at; another node, or a new attempt, goes back to the last. */
function useAttempt(node: NodeState | undefined): [number | null, (attempt: number | null) => void] {
  const [attempt, setAttempt] = useState<number | null>(null)
  useEffect(() => setAttempt(null), [node?.key, node?.attempt])
  return [attempt, setAttempt]
}
