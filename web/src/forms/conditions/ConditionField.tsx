// A condition: rows of value, operator and value beside the text of the expression, which is what the document holds. Text that
// is more than rows is edited as text.

import { useRef, useState, type ReactElement } from 'react'
import { ReferenceField } from '../fields/ReferenceField'
import { AddRow, focusField, replaced, RowTools } from '../fields/rows'
import { useFieldScope } from '../fields/scope'
import {
  EMPTY_ROW,
  hasRight,
  OPERATORS,
  readCondition,
  readsSomething,
  writeCondition,
  type Condition,
  type Operator,
  type Row,
} from './condition'

export interface ConditionFieldProps {
  label: string
  path: string
  value: string
  onChange: (text: string) => void
  /** What is written when the last row is removed. */
  empty?: string
  /** It begins without a row. */
  optional?: boolean
  placeholder?: string
  describedBy?: string
  invalid?: boolean
  inside?: boolean
}

export function ConditionField(props: ConditionFieldProps): ReactElement {
  const { label, path, value, onChange, empty = '', optional = false, inside = false } = props
  const { readonly } = useFieldScope()
  // Once it is text it stays text: what is typed becomes a row, and none, with every key.
  const [asText, setAsText] = useState(() => readCondition(value) === null)
  // Rows that are not finished are not in the text, and stay here.
  const [edited, setEdited] = useState<{ text: string; condition: Condition } | null>(null)
  const condition = edited?.text === value ? edited.condition : readCondition(value)
  const testId = `field-${path}`
  const chosen = condition?.rows.some((row) => row.left.trim())
  // Its line stays, so that nothing moves away below the pointer when a value is chosen.
  const noteShown = useRef(false)
  if (condition && !chosen && CONSTANT[condition.otherwise]) noteShown.current = true

  if (asText || condition === null) {
    return (
      <div className="cond">
        <ReferenceField
          label={label}
          testId={testId}
          describedBy={props.describedBy ?? ''}
          invalid={props.invalid ?? false}
          value={value}
          onChange={(text) => (setAsText(true), onChange(text))}
          multiline
          mono
          expression
          inside={inside}
          placeholder={props.placeholder ?? ''}
        />
        {readonly ? null : (
          <div className="cond__foot">
            {condition === null ? (
              <span className="fld__about">This expression can only be edited as text.</span>
            ) : (
              <button
                type="button"
                className="linklike"
                data-testid={`rows-${path}`}
                onClick={() => (setAsText(false), focusField(`${testId}.0.left`))}
              >
                Edit as rules
              </button>
            )}
          </div>
        )}
      </div>
    )
  }

  const rows = condition.rows.length || optional ? condition.rows : [EMPTY_ROW]
  const put = (next: Partial<Condition>): void => {
    const changed = { ...condition, rows, otherwise: condition.otherwise || empty, ...next }
    const text = writeCondition(changed)
    setEdited({ text, condition: changed })
    if (text !== value) onChange(text)
  }
  const remove = (i: number): void => {
    put({ rows: replaced(rows, i, undefined) })
    focusField(`add-${path}`)
  }
  return (
    <div className="cond">
      {rows.length > 1 ? (
        <label className="cond__match">
          Match
          <select
            data-testid={`match-${path}`}
            value={condition.match}
            disabled={readonly}
            onChange={(event) => put({ match: event.target.value as Condition['match'] })}
          >
            <option value="all">all</option>
            <option value="any">any</option>
          </select>
          of these rules
        </label>
      ) : null}
      {rows.map((row, i) => (
        <RowFields
          key={i}
          row={row}
          name={rows.length > 1 ? `${label}, rule ${i + 1}` : label}
          testId={`${testId}.${i}`}
          inside={inside}
          invalid={props.invalid ?? false}
          describedBy={props.describedBy ?? ''}
          onChange={(next) => put({ rows: replaced(rows, i, next) })}
          onRemove={rows.length > 1 || optional ? () => remove(i) : undefined}
        />
      ))}
      {noteShown.current ? (
        <p className="fld__about" style={chosen ? { visibility: 'hidden' } : undefined}>
          {CONSTANT[condition.otherwise]}
        </p>
      ) : null}
      {readonly ? null : (
        <div className="cond__foot">
          <AddRow
            testId={`add-${path}`}
            onClick={() => (put({ rows: [...rows, EMPTY_ROW] }), focusField(`${testId}.${rows.length}.left`))}
          >
            Add rule
          </AddRow>
          <button
            type="button"
            className="linklike"
            data-testid={`text-${path}`}
            onClick={() => (setAsText(true), focusField(testId))}
          >
            Edit as text
          </button>
        </div>
      )}
    </div>
  )
}

const CONSTANT: Readonly<Record<string, string>> = {
  true: 'Always true until you choose a value.',
  false: 'Never true until you choose a value.',
}

function RowFields({
  row,
  name,
  testId,
  inside,
  invalid,
  describedBy,
  onChange,
  onRemove,
}: {
  row: Row
  name: string
  testId: string
  inside: boolean
  invalid: boolean
  describedBy: string
  onChange: (row: Row) => void
  onRemove: (() => void) | undefined
}): ReactElement {
  const { readonly } = useFieldScope()
  return (
    <div className="cond__row" role="group" aria-label={name}>
      <ReferenceField
        label={`Value of ${name}`}
        testId={`${testId}.left`}
        value={row.left}
        placeholder="Type < to choose a value"
        expression
        pick
        inside={inside}
        describedBy={describedBy}
        invalid={invalid && !row.left.trim()}
        onChange={(left) => onChange({ ...row, left })}
      />
      <select
        aria-label={`Operator of ${name}`}
        data-testid={`${testId}.operator`}
        value={row.operator}
        disabled={readonly}
        onChange={(event) => onChange({ ...row, operator: event.target.value as Operator, form: 0 })}
      >
        {Object.entries(OPERATORS).map(([operator, words]) => (
          <option key={operator} value={operator}>
            {words}
          </option>
        ))}
      </select>
      {hasRight(row.operator) ? (
        <ReferenceField
          label={`Compared value of ${name}`}
          testId={`${testId}.right`}
          value={row.right}
          placeholder="Value"
          expression
          inside={inside}
          onChange={(right) => onChange({ ...row, right })}
        />
      ) : null}
      {onRemove ? <RowTools at={0} count={1} name="rule" onRemove={onRemove} /> : null}
      {row.left.trim() && !readsSomething(row.left) ? (
        <p className="ref__wrong cond__note">This is text. Type &lt; to compare a value of the run.</p>
      ) : null}
    </div>
  )
}
