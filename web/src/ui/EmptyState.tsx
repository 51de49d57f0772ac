// The placeholder of an empty list: what belongs here, and how to add it.

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
