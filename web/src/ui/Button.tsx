// A button that can say why it cannot be pressed: `why` disables it, is its tooltip, and is read out. It stays focusable.

import type { ButtonHTMLAttributes, ReactElement, ReactNode } from 'react'
import { Icon, type IconName } from './icons'
import { useServerReadOnly } from './rights'

export interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'disabled'> {
  kind?: 'plain' | 'primary' | 'danger' | 'bare'
  icon?: IconName
  /** Only the icon is drawn; the children are its name. */
  iconOnly?: boolean
  /** The key that does the same, as `keyText` of keys.ts gives it. */
  keys?: string
  /** Why it is disabled. */
  why?: string | null | undefined
  /** It changes something on the server: disabled when that is read-only. */
  changes?: boolean
  children: ReactNode
}

export function Button({
  kind = 'plain',
  icon,
  iconOnly,
  keys,
  why: whyNow,
  changes,
  children,
  onClick,
  className,
  title,
  ...rest
}: ButtonProps): ReactElement {
  const readOnly = useServerReadOnly()
  const why = (changes ? readOnly : null) ?? whyNow
  const name = typeof children === 'string' ? children : undefined
  const classes = ['button', kind === 'plain' ? '' : `button--${kind}`, iconOnly ? 'button--icon' : '', className ?? '']
  return (
    <button
      type="button"
      {...rest}
      className={classes.filter(Boolean).join(' ')}
      aria-disabled={why ? true : undefined}
      aria-label={iconOnly ? name : rest['aria-label']}
      title={why ?? title ?? (iconOnly ? [name, keys].filter(Boolean).join('  ') : undefined)}
      onClick={(event) => (why ? event.preventDefault() : onClick?.(event))}
    >
      {icon ? <Icon name={icon} /> : null}
      {iconOnly ? null : children}
      {keys && !iconOnly ? <kbd>{keys}</kbd> : null}
      {why ? <span className="visually-hidden">{why}</span> : null}
    </button>
  )
}
