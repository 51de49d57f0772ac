// Asks before something that is stored is deleted.

import type { ReactElement, ReactNode } from 'react'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'
import { messageOf } from '../../ui/words'

interface Props {
  /** `the secret API_KEY`. */
  what: string
  /** What follows from it. */
  children: ReactNode
  act: () => Promise<unknown>
  onDone: () => void
  onClose: () => void
}

export function DeleteDialog({ what, children, act, onDone, onClose }: Props): ReactElement {
  const remove = async (): Promise<void> => {
    onClose()
    try {
      await act()
      onDone()
      toast(`Deleted ${what}`, 'ok')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <Dialog
      title={`Delete ${what}?`}
      open
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" data-testid="delete" onClick={() => void remove()}>
            Delete
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  )
}
