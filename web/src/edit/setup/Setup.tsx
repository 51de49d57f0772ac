// The list of what is left before the workflow runs, as after an import: each task is done here, and the next one gets the focus.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Task } from '../../api/schemas'
import { run } from '../../actions/start'
import { docStore } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { seenStore, stepsOf } from './tasks'
import { TaskBody } from './TaskBody'
import './setup.css'

export default function Setup(): ReactElement {
  const left = useStore(docStore, (s) => s.tasks)
  const seen = useStore(seenStore, (s) => s.seen)
  const mayNot = useReadOnly()
  const steps = stepsOf(seen, left)
  const [chosen, setChosen] = useState<string | null>(null)
  const open = steps.filter((step) => !step.done)
  const active = open.find((step) => step.task.id === chosen)?.task.id ?? open[0]?.task.id ?? null
  const done = steps.length - open.length
  const triggers = seen.find((task) => task.kind === 'triggers')
  const list = useRef<HTMLOListElement>(null)
  const before = useRef(active)
  useEffect(() => {
    if (before.current === active) return
    before.current = active
    // The one that was worked on is done, or another one was chosen: go on there.
    const next = list.current?.querySelector<HTMLElement>('[data-open] .setup__body')
    const control = next?.querySelector<HTMLElement>('input:not([readonly]), select, textarea')
    ;(control ?? next?.querySelector<HTMLElement>('button:not([disabled])'))?.focus()
  }, [active])
  return (
    <section className="setup" aria-label="Set up" data-testid="setup">
      <header className="setup__head">
        <h2>Set up</h2>
        <span className="setup__count" role="status" data-testid="setup-count">
          {done} of {steps.length}
        </span>
        <Button kind="bare" icon="close" iconOnly onClick={() => uiStore.setState({ setup: false })}>
          Close
        </Button>
      </header>
      <progress className="setup__progress" aria-label="Set up" value={done} max={Math.max(steps.length, 1)} />
      <ol ref={list} className="setup__list">
        {steps.map(({ task, done: isDone }) => (
          <li
            key={task.id}
            className="setup__step"
            data-done={isDone || undefined}
            data-open={task.id === active || undefined}
          >
            <StepHead task={task} done={isDone} open={task.id === active} onOpen={() => setChosen(task.id)} />
            {task.id === active ? (
              <div className="setup__body">
                <TaskBody task={task} />
              </div>
            ) : null}
          </li>
        ))}
      </ol>
      {open.length ? null : (
        <footer className="setup__end" data-testid="setup-done">
          <p>
            {steps.length ? 'All is set up.' : 'Nothing is left to set up.'}
            {triggers ? ` ${triggers.title}.` : ''}
          </p>
          <Button
            kind="primary"
            icon="play"
            data-testid="setup-run"
            why={mayNot}
            onClick={() => {
              uiStore.setState({ setup: false })
              void run()
            }}
          >
            Run
          </Button>
          {triggers ? (
            <Button why={mayNot} onClick={() => uiStore.setState({ overlay: 'version' })}>
              Publish
            </Button>
          ) : null}
        </footer>
      )}
    </section>
  )
}

function StepHead({
  task,
  done,
  open,
  onOpen,
}: {
  task: Task
  done: boolean
  open: boolean
  onOpen: () => void
}): ReactElement {
  return (
    <button
      type="button"
      className="setup__title"
      aria-expanded={done ? undefined : open}
      disabled={done}
      data-testid={`task-${task.kind}`}
      onClick={onOpen}
    >
      {done ? <Icon name="succeeded" size={16} label="Done" /> : <i className="setup__mark" aria-hidden="true" />}
      <span>{task.title}</span>
    </button>
  )
}
