// Actions on a wait besides answering its form: copy its address for the person who answers, send a signal or an update.

import { useState, type ReactElement } from 'react'
import { api } from '../net/api'
import { sendUpdate, updateOf } from '../net/updates'
import type { Json } from '../api/schemas'
import type { WaitView } from '../api/types'
import { Button } from '../ui/Button'
import { Dialog } from '../ui/Dialog'
import { useReadOnly } from '../ui/rights'
import { copyText } from '../ui/copy'
import { toast } from '../ui/Toast'
import { messageOf } from '../ui/words'

export function CopyLink({ link, what }: { link: string; what: 'link' | 'URL' }): ReactElement {
  const copy = (): Promise<void> => copyText(new URL(link, location.origin).href, `Copied ${what}`)
  return (
    <Button icon="link" onClick={() => void copy()}>
      Copy {what}
    </Button>
  )
}

export function SendSignal({ view, why }: { view: WaitView; why?: string | null }): ReactElement {
  const mayNot = useReadOnly()
  const [open, setOpen] = useState(false)
  const update = updateOf(view.name ?? '')
  const what = update === null ? 'signal' : 'update'
  const [text, setText] = useState(update === null ? '{}' : 'null')
  const [trouble, setTrouble] = useState('')
  const send = async (): Promise<void> => {
    let payload: Json
    try {
      payload = JSON.parse(text.trim() || 'null') as Json
    } catch {
      return setTrouble('This is not valid JSON.')
    }
    try {
      if (update === null) await api.signal(view.run, view.name!, payload, view.correlation ?? undefined)
      else {
        const { answered, answer } = await sendUpdate(view.run, update, payload)
        toast(
          answered ? `Answer: ${JSON.stringify(answer)}` : 'Sent. There is no answer yet.',
          answered ? 'ok' : 'wait',
        )
      }
      setOpen(false)
    } catch (error) {
      setTrouble(messageOf(error))
    }
  }
  return (
    <>
      <Button why={mayNot ?? why} onClick={() => setOpen(true)}>
        Send {what}
      </Button>
      <Dialog
        title={`Send ${update ?? view.name}`}
        open={open}
        onClose={() => setOpen(false)}
        foot={
          <Button kind="primary" onClick={() => void send()}>
            Send
          </Button>
        }
      >
        <label htmlFor="signal-payload">{update === null ? 'Payload' : 'Value'} (JSON)</label>
        <textarea
          id="signal-payload"
          className="mono"
          rows={5}
          spellCheck={false}
          value={text}
          aria-invalid={trouble ? true : undefined}
          onChange={(event) => setText(event.target.value)}
        />
        {trouble ? (
          <p className="notice" data-tone="err" role="alert">
            {trouble}
          </p>
        ) : null}
      </Dialog>
    </>
  )
}
