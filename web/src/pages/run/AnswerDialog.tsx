// The form of a wait over the page of its run. If someone else has answered meanwhile, that answer is shown.

import { useState, type ReactElement } from 'react'
import type { WaitView } from '../../api/types'
import { Dialog } from '../../ui/Dialog'
import { useWhyNot } from '../../watch/run/useWhyNot'
import { titleOf, tooLate } from '../answer'
import { AnswerForm, Outcome } from '../AnswerForm'

export function AnswerDialog({ wait, onClose }: { wait: WaitView; onClose: () => void }): ReactElement {
  const why = useWhyNot()
  const [done, setDone] = useState<WaitView | null>(null)
  return (
    <Dialog title={titleOf(wait)} open onClose={onClose}>
      {done ? (
        <>
          <p className="notice" data-tone="wait">
            {tooLate(done)}. Recorded answer:
          </p>
          <Outcome wait={done} />
        </>
      ) : (
        <AnswerForm wait={wait} why={why} onDone={(answered, mine) => (mine ? onClose() : setDone(answered))} />
      )}
    </Dialog>
  )
}
