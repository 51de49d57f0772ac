// Above the canvas while a rewind is prepared: the moment, and what Continue would do.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { Icon } from '../../ui/icons'
import { rewindStore } from './rewindStore'

export function RewindLine(): ReactElement | null {
  const { open, moment, text } = useStore(rewindStore)
  if (!open || !moment) return null
  return (
    <p className="rewindline" data-testid="rewind-line">
      <b>
        <Icon name="undo" size={13} /> {moment}
      </b>
      <span>Nothing is called until Continue. {text}</span>
    </p>
  )
}
