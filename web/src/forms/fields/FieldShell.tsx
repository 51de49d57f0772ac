// What stands around every control: its name, whether it is required, what it is for, and what is wrong with it.

import { useId, useLayoutEffect, useRef, type ReactElement, type ReactNode } from 'react'
import type { Diagnostic } from '../../api/schemas'
import { Icon } from '../../ui/icons'
import { sentence } from '../../ui/words'
import { useCalm } from './calm'
import { findingsAt, useFieldScope } from './scope'

export interface FieldIds {
  control: string
  label: string
  describedBy: string | undefined
  invalid: boolean
}

interface FieldShellProps {
  label: string
  description?: string | undefined
  required?: boolean | undefined
  /** JSON pointer into the document. `below`: findings of what is inside count too. */
  pointer?: string | undefined
  below?: boolean
  /** It has no value (yet): if it is required, that is shown without asking the server. undefined: not known. */
  empty?: boolean | undefined
  /** A reason of the form itself, beside what the server found. */
  error?: string | null | undefined
  /** Right of the label. */
  tools?: ReactNode
  /** The control is a group of controls: named by the label, not opened by it. */
  group?: boolean
  children: (ids: FieldIds) => ReactNode
}

/** Help that is higher than this lies above the next field. */
const LINE = 20

export function FieldShell({
  label,
  description,
  required,
  pointer,
  below = true,
  empty,
  error,
  tools,
  group,
  children,
}: FieldShellProps): ReactElement {
  const id = useId()
  const { diagnostics } = useFieldScope()
  const found = pointer === undefined ? [] : findingsAt(diagnostics, pointer, below)
  const all = empty === undefined ? found : withRequired(found, pointer, required && empty ? label : null, empty)
  const { shown: findings, ...watch } = useCalm(all)
  const isWrong = !!error || findings.some((each) => each.severity === 'error')
  const described = [description ? `${id}-about` : '', error || findings.length ? `${id}-found` : '']
    .filter(Boolean)
    .join(' ')
  // One line is kept for findings and help. The tallest height so far stays, so that the fields below do not move.
  const under = useRef<HTMLDivElement>(null)
  const tallest = useRef(0)
  const about = useRef<HTMLParagraphElement>(null)
  useLayoutEffect(() => {
    if (under.current) tallest.current = Math.max(tallest.current, under.current.offsetHeight)
    about.current?.toggleAttribute('data-long', about.current.offsetHeight > LINE)
  })
  const ids: FieldIds = {
    control: `${id}-control`,
    label: `${id}-label`,
    describedBy: described || undefined,
    invalid: isWrong,
  }
  return (
    <div
      className="fld"
      data-invalid={isWrong || undefined}
      role={group ? 'group' : undefined}
      aria-labelledby={group ? ids.label : undefined}
      {...watch}
    >
      <div className="fld__head">
        {group ? (
          <span className="fld__label" id={ids.label}>
            {label}
          </span>
        ) : (
          <label className="fld__label" id={ids.label} htmlFor={ids.control}>
            {label}
          </label>
        )}
        {required ? <span className="fld__needed">Required</span> : null}
        {tools ? <span className="fld__tools">{tools}</span> : null}
      </div>
      {children(ids)}
      <div ref={under} className="fld__below" style={{ minHeight: tallest.current || undefined }}>
        {description ? (
          <p ref={about} className="fld__about" id={`${id}-about`}>
            {description}
          </p>
        ) : null}
        {error || findings.length ? (
          <div className="fld__found" id={`${id}-found`}>
            {error ? (
              <p className="finding" data-severity="error">
                <Icon name="failed" size={14} />
                <span>{sentence(error)}</span>
              </p>
            ) : null}
            <Shown findings={findings} />
          </div>
        ) : null}
      </div>
    </div>
  )
}

/** The findings without `required` if the field has a value, and with it if a value is missing. */
function withRequired(
  found: readonly Diagnostic[],
  pointer: string | undefined,
  missing: string | null,
  empty: boolean,
): Diagnostic[] {
  const others = empty ? [...found] : found.filter((each) => each.code !== 'required' || each.pointer !== pointer)
  if (missing === null || others.some((each) => each.code === 'required')) return others
  return [
    { code: 'required', severity: 'error', message: `${missing} is required.`, pointer: pointer ?? '' },
    ...others,
  ]
}

/** Findings beside the fields; none in the form of a block that was just added. */
export function Findings({ findings }: { findings: readonly Diagnostic[] }): ReactElement | null {
  return useFieldScope().calm ? null : <Shown findings={findings} />
}

/** A row of fields with what is wrong in it. `children` get whether that is an error. */
export function FindingsRow({
  label,
  pointer,
  children,
}: {
  label: string
  pointer: string | undefined
  children: (isWrong: boolean) => ReactNode
}): ReactElement {
  const { diagnostics } = useFieldScope()
  const { shown, ...watch } = useCalm(pointer === undefined ? [] : findingsAt(diagnostics, pointer, true))
  return (
    <div className="case" role="group" aria-label={label} {...watch}>
      {children(shown.some((each) => each.severity === 'error'))}
      <Shown findings={shown} />
    </div>
  )
}

function Shown({ findings }: { findings: readonly Diagnostic[] }): ReactElement {
  return (
    <>
      {findings.map((each, i) => (
        <p key={i} className="finding" data-severity={each.severity} data-code={each.code}>
          <Icon name={each.severity === 'error' ? 'failed' : 'warning'} size={14} label={each.severity} />
          <span>
            {sentence(each.message)}
            {each.hint ? <span className="finding__hint"> {sentence(each.hint)}</span> : null}
          </span>
        </p>
      ))}
    </>
  )
}
