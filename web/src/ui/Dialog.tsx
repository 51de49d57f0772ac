// The native <dialog>: focus stays inside, Escape closes, Enter in a line does what the dialog is for, focus returns.

import { useEffect, useId, useRef, type KeyboardEvent, type ReactElement, type ReactNode } from 'react'
import { Button } from './Button'

export interface DialogProps {
  title: string
  open: boolean
  onClose: () => void
  wide?: boolean
  className?: string
  /** The primary button has the keyboard first, not the first field. */
  primaryFirst?: boolean
  /** Between the title and the button that closes. */
  aside?: ReactNode
  /** Buttons at the bottom right. */
  foot?: ReactNode
  children: ReactNode
}

export function Dialog({
  title,
  open,
  onClose,
  wide,
  className,
  primaryFirst,
  aside,
  foot,
  children,
}: DialogProps): ReactElement | null {
  const ref = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const dialog = ref.current
    if (!dialog || !open) return
    const opener = document.activeElement as HTMLElement
    if (!dialog.open) {
      dialog.showModal()
      // What is to be filled in has the keyboard first, not the button that closes.
      const primary = '.dialog__foot .button--primary'
      const first = dialog.querySelector<HTMLElement>(
        primaryFirst
          ? primary
          : `.dialog__body :is(input:not([type=hidden], [type=radio]:not(:checked)), textarea, select), ${primary}`,
      )
      first?.focus()
    }
    return () => {
      dialog.close()
      // By now it is no longer in the page, and then the browser does not give the keyboard back.
      if (document.activeElement === document.body) opener.focus()
    }
  }, [open])
  if (!open) return null
  return (
    <dialog
      ref={ref}
      className={['dialog', wide ? 'dialog--wide' : '', className ?? ''].filter(Boolean).join(' ')}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onPointerDown={(event) => {
        if (event.target === ref.current) onClose()
      }}
      onKeyDown={onKeyDown}
    >
      <div className="dialog__head">
        <h2 id={id}>{title}</h2>
        {aside}
        <Button kind="bare" icon="close" iconOnly onClick={onClose}>
          Close
        </Button>
      </div>
      <div className="dialog__body">{children}</div>
      {foot ? <div className="dialog__foot">{foot}</div> : null}
    </dialog>
  )
}

const ONE_LINE = 'input:is([type=text], [type=password], [type=number], [type=radio], [type=checkbox])'

/** Enter in a line presses the button of the dialog, as it does in every form. */
function onKeyDown(event: KeyboardEvent<HTMLDialogElement>): void {
  const field = event.target as HTMLInputElement
  if (event.key !== 'Enter' || event.defaultPrevented || event.nativeEvent.isComposing) return
  if (!field.matches(ONE_LINE) || field.form) return
  event.preventDefault()
  event.currentTarget.querySelector<HTMLElement>('.dialog__foot .button--primary')?.click()
}
