// The draft, tried beside the canvas: messages or events run it as it is, blocks and tools light up, and the talk is kept.

import { useEffect, useRef, useState, type FormEvent, type ReactElement, type ReactNode } from 'react'
import { useStore } from 'zustand'
import type { JsonObject } from '../../api/schemas'
import { runDraft } from '../../actions/start'
import { formSchema, triggersOf } from '../../document/triggers'
import { defaultsOf, fieldsOf, readTyped, type Typed } from '../../forms/fields/form'
import { SchemaForm } from '../../forms/fields/SchemaForm'
import { docStore, specsStore } from '../../state/doc'
import { openRun, runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { isEnded } from '../../run'
import { Button } from '../../ui/Button'
import { useReadOnly } from '../../ui/rights'
import { messageOf } from '../../ui/words'
import { Listen } from './Listen'
import { keepTalk, newTalk, readTalk } from './talk'
import { TurnView } from './TurnView'
import './playground.css'

export default function Playground({ draft }: { draft: string }): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  const specs = useStore(specsStore, (s) => s.specs)
  const triggers = triggersOf(doc, specs)
  const [talk, setTalk] = useState(() => readTalk(draft))
  // What one works on: the selected trigger, else that of the last turn.
  const [chosen, setChosen] = useState<string | null>(
    () =>
      uiStore.getState().selection.blocks.find((id) => triggers.some((each) => each.id === id)) ??
      talk.turns.at(-1)?.trigger ??
      null,
  )
  const trigger =
    triggers.find((each) => each.id === chosen) ??
    triggers.find((each) => doc.blocks[each.id]?.type === 'chat_trigger') ??
    triggers[0]
  const type = trigger && doc.blocks[trigger.id]?.type
  const chat = type === 'chat_trigger'
  const [trouble, setTrouble] = useState('')
  const end = useRef<HTMLDivElement>(null)
  useEffect(() => keepTalk(draft, talk), [draft, talk])
  useEffect(() => end.current?.scrollIntoView({ block: 'end' }), [talk.turns.length])
  useEffect(() => {
    // After a reload the canvas shows the last turn again.
    const last = talk.turns.at(-1)
    if (last && runStore.getState().id === null) void openRun(last.run)
  }, [])

  const send = async (input: JsonObject): Promise<boolean> => {
    if (!trigger) return false
    setTrouble('')
    try {
      const { run } = await runDraft(input, triggers.length > 1 ? { trigger: trigger.id } : {})
      setTalk((now) => ({ ...now, turns: [...now.turns, { run, input, trigger: trigger.id }] }))
      return true
    } catch (error) {
      setTrouble(messageOf(error))
      return false
    }
  }
  return (
    <section className="talk" aria-label="Try the draft" data-testid="playground">
      <div className="talk__head">
        <h2>Try the draft</h2>
        <Button kind="bare" why={talk.turns.length ? null : 'Nothing to forget'} onClick={() => setTalk(newTalk())}>
          {chat ? 'New talk' : 'Clear'}
        </Button>
        <Button kind="bare" icon="close" iconOnly onClick={() => uiStore.setState({ playground: false })}>
          Close
        </Button>
      </div>
      {triggers.length > 1 ? (
        <label className="talk__trigger">
          <span className="label">Starts at</span>
          <select value={trigger?.id} onChange={(event) => setChosen(event.target.value)} data-testid="talk-trigger">
            {triggers.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <div className="talk__turns">
        {talk.turns.length ? (
          <ol>
            {talk.turns.map((turn) => (
              <TurnView key={turn.run} turn={turn} chat={doc.blocks[turn.trigger]?.type === 'chat_trigger'} />
            ))}
          </ol>
        ) : (
          <p className="talk__empty">
            {chat
              ? 'Write as a visitor of the chat page would. The draft answers; nothing needs to be published.'
              : 'Send an event to run the draft. Nothing needs to be published.'}
          </p>
        )}
        <div ref={end} />
      </div>
      {trouble ? (
        <p className="talk__trouble" role="alert">
          {trouble}
        </p>
      ) : null}
      {!trigger ? (
        <p className="talk__empty">Add a trigger first: a chat page, a webhook, a form or Start.</p>
      ) : chat ? (
        <Composer onSend={(message) => send({ message, conversation: talk.conversation })} />
      ) : (
        <EventForm key={trigger.id} trigger={trigger.id} onSend={send}>
          {type === 'webhook' || type?.startsWith('event.') ? (
            <Listen
              draft={draft}
              trigger={trigger.id}
              polled={type !== 'webhook'}
              listening={talk.listening}
              known={talk.turns.map((turn) => turn.run)}
              onListen={(listening) => setTalk(({ listening: _, ...now }) => (listening ? { ...now, listening } : now))}
              onTurn={(turn) => {
                setTalk((now) => ({ ...now, turns: [...now.turns, turn] }))
                void openRun(turn.run)
              }}
            />
          ) : null}
        </EventForm>
      )}
    </section>
  )
}

function useWhyNot(): string | null {
  const mayNot = useReadOnly()
  const busy = useStore(runStore, (s) => s.id !== null && s.head.seq > 0 && !isEnded(s.head.status))
  return mayNot ?? (busy ? 'The last one has not ended yet' : null)
}

function Composer({ onSend }: { onSend: (message: string) => Promise<boolean> }): ReactElement {
  const [text, setText] = useState('')
  const [sending, setSending] = useState(false)
  const why = useWhyNot() ?? (sending ? 'Sending' : null)
  const send = async (): Promise<void> => {
    const message = text.trim()
    if (!message || why !== null) return
    setSending(true)
    if (await onSend(message)) setText('')
    setSending(false)
  }
  return (
    <form
      className="talk__composer"
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        void send()
      }}
    >
      <textarea
        rows={2}
        aria-label="Message"
        placeholder="Write a message"
        data-testid="talk-message"
        value={text}
        maxLength={8000}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          event.stopPropagation()
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <Button
        kind="primary"
        data-testid="talk-send"
        why={why ?? (text.trim() ? null : 'Write a message first')}
        onClick={() => void send()}
      >
        Send
      </Button>
    </form>
  )
}

function EventForm({
  trigger,
  onSend,
  children,
}: {
  trigger: string
  onSend: (input: JsonObject) => Promise<boolean>
  children: ReactNode
}): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  const fields = fieldsOf(formSchema(doc, trigger))
  const [typed, setTyped] = useState<Typed>(() => defaultsOf(fields))
  const [sent, setSent] = useState(false)
  const { values, errors } = readTyped(fields, typed)
  const wrong = Object.values(errors)[0]
  const why = useWhyNot()
  const send = async (): Promise<void> => {
    setSent(true)
    if (wrong === undefined && why === null && (await onSend(values))) setSent(false)
  }
  return (
    <form
      className="talk__form"
      noValidate
      onSubmit={(event: FormEvent) => {
        event.preventDefault()
        void send()
      }}
    >
      {children}
      <SchemaForm fields={fields} typed={typed} onChange={setTyped} errors={errors} sent={sent} />
      <Button kind="primary" data-testid="talk-send" why={why} onClick={() => void send()}>
        Send event
      </Button>
    </form>
  )
}
