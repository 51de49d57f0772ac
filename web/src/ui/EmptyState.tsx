// What stands where nothing is yet: says what belongs here, and offers the way to it.

import type { ReactElement, ReactNode } from 'react'
import { Icon, type IconName } from './icons'

export function EmptyState({
  icon,
  title,
  children,
}: {
  icon?: IconName
  title: string
  children?: ReactNode
}): ReactElement {
  return (
    <div className="empty">
      {icon ? <Icon name={icon} size={24} /> : null}
      <p className="empty__title">{title}</p>
      {children}
    </div>
  )
}
