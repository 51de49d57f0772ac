// The head of the inspector: kind, name, state, and where in the run this is.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { dispatch } from '../../state/doc'
import { chainOf, kindOf, nameOf, routeTitle } from '../../document/document'
import { runStore } from '../../state/live'
import { pathFor, parsePath, scopesAt, shownStatus, statusAt, type NodeState } from '../../run'
import { openSheet, uiStore, type InspectorTab } from '../../state/ui'
import { isWritable, normalize } from '../../refs/parse'
import { refName, RESERVED } from '../../refs/scope'
import { Button } from '../../ui/Button'
import { Icon, iconOf } from '../../ui/icons'
import { Status } from '../../ui/status'
import { CommitInput } from '../../forms/fields/rows'
import { useFieldScope } from '../../forms/fields/scope'
import { durationText, roughly } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { sentence } from '../../ui/words'
import { ScopeButtons } from './ScopeButtons'

export function BlockHead({
  id,
  node,
  hasRun,
  tab,
}: {
  id: string
  node: NodeState | undefined
  hasRun: boolean
  tab: InspectorTab
}): ReactElement {
  const { doc, specs, readonly } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const block = doc.blocks[id]!
  const name = nameOf(doc, id)
  const shared = !readonly && refName(doc, id) === id && normalize(name) !== normalize(id)
  return (
    <header className="inspector__head">
      <div className="inspector__title">
        <Icon name={iconOf(block.type)} />
        {readonly ? (
          <h2>{name}</h2>
        ) : (
          <CommitInput
            label="Name of the block"
            testId="block-name"
            value={name}
            onCommit={(next) => dispatch({ type: 'rename', id, name: next })}
            check={(text) =>
              text.trim() === ''
                ? 'A block needs a name.'
                : text.length > 128
                  ? 'A name has at most 128 characters.'
                  : null
            }
          />
        )}
        <Button kind="bare" icon="expand" iconOnly keys="Enter" data-testid="open-sheet" onClick={() => openSheet(id)}>
          Open the sheet
        </Button>
        {hasRun ? <Status status={node ? shownStatus(node) : statusAt(view, doc, id, iter)} /> : null}
      </div>
      {shared ? (
        <p className="inspector__note">
          {isWritable(name) && !RESERVED.has(normalize(name))
            ? 'Another block has this name.'
            : 'This name cannot be used in references.'}{' '}
          Use <code>{`<${id}>`}</code> in references.
        </p>
      ) : null}
      {block.enabled === false ? <p className="inspector__note">This block is disabled and does not run.</p> : null}
      <dl className="facts">
        <dt>Type</dt>
        <dd>{specs.get(block.type)?.title ?? block.type}</dd>
        {hasRun ? <RunFacts id={id} node={node} /> : null}
      </dl>
      {node?.status === 'failed' && node.error && tab !== 'output' ? (
        <p className="inspector__error" data-testid="head-error">
          {sentence(node.error.message)} {node.error.hint ? sentence(node.error.hint) : null}
        </p>
      ) : null}
    </header>
  )
}

function RunFacts({ id, node }: { id: string; node: NodeState | undefined }): ReactElement {
  const { doc, specs } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const now = useClock(200)
  const around = chainOf(doc, id).reverse()
  const path = parsePath(pathFor(view, doc, id, iter))
  const attempts = node ? Math.max(node.attempt, 1) : 0
  const most = doc.blocks[id]?.policy?.retry?.max_attempts
  const due = node?.dueAt && node.dueAt > now ? roughly(node.dueAt - now) : null
  // A block that waits counts from its question: what it did before was not waiting.
  const from = node?.status === 'waiting' ? (node.wait?.openedAt ?? node.startedAt) : node?.startedAt
  const took = from ? (node?.finishedAt ?? now) - from : null
  const region = node?.region
  return (
    <>
      {around.map((container) => {
        const index = path.find((part) => part.container === container)?.index ?? 0
        const { scopes } = scopesAt(view, doc, container, iter)
        const word = kindOf(doc, container) === 'parallel' ? 'branch' : 'iteration'
        return (
          <Fact key={container} name={word === 'branch' ? 'Branch' : 'Iteration'}>
            {nameOf(doc, container)} <b>{scopes.length ? index + 1 : 0}</b> of {scopes.length}
            {scopes.length > 1 ? (
              <span className="facts__step">
                <ScopeButtons container={container} index={index} scopes={scopes} word={word} />
              </span>
            ) : null}
          </Fact>
        )
      })}
      {region ? (
        <Fact name="Finished">
          {region.closed} of {region.count}
          {region.failed ? `, ${region.failed} failed` : ''}
        </Fact>
      ) : null}
      {attempts > 1 || node?.status === 'retrying' ? (
        <Fact name="Attempt">
          {attempts}
          {most ? ` of ${most}` : ''}
          {node?.status === 'retrying' && due ? `, next in ${due}` : ''}
        </Fact>
      ) : null}
      {node?.pinned ? <Fact name="Output">Pinned, the block did not run</Fact> : null}
      {node?.cached ? <Fact name="Output">From the cache</Fact> : null}
      {node?.lost ? <Fact name="Restarts">{node.lost}</Fact> : null}
      {node?.status === 'waiting' && due ? <Fact name="Expires in">{due}</Fact> : null}
      {took !== null && node?.status !== 'skipped' ? (
        <Fact name={node?.finishedAt ? 'Duration' : node?.status === 'waiting' ? 'Waiting for' : 'Running for'}>
          {durationText(took)}
        </Fact>
      ) : null}
      {node?.route && node.route !== 'out' ? (
        <Fact name="Branch taken">{routeTitle(doc, id, node.route, specs)}</Fact>
      ) : null}
    </>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }): ReactElement {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}
