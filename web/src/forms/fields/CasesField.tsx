// The ways out of a condition or router: each a title and a rule; its id is the handle that edges leave by.

import type { ReactElement } from 'react'
import { isObject, withKey } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import { freshId } from '../../document/document'
import { selectFirst } from '../../ui/selectFirst'
import { ConditionField } from '../conditions/ConditionField'
import type { ControlProps } from './control'
import { FindingsRow } from './FieldShell'
import { ValueField } from './JsonText'
import { AddRow, checkHandle, CommitInput, focusField, moved, replaced, RowTools } from './rows'
import { useFieldScope } from './scope'

export function CasesField(props: ControlProps): ReactElement {
  const { value, onChange, path, name, pointer } = props
  const scope = useFieldScope()
  const items: JsonObject[] = (Array.isArray(value) ? value : []).map((item) => (isObject(item) ? item : {}))
  const router = name === 'routes'
  const ids = items.map((item) => String(item.id ?? ''))
  const put = (next: readonly JsonObject[]): void => onChange([...next] as Json[])
  const hasElse = items.some((item) => isElse(item) && !router)
  const add = (rule: JsonObject, base: string): void => {
    const item = { id: freshId((id) => ids.includes(id) || id === 'out' || id === 'error', base), ...rule }
    const last = items.at(-1)
    // An else that is not the last one hides what follows.
    const at = last && !router && isElse(last) ? items.length - 1 : items.length
    put([...items.slice(0, at), item, ...items.slice(at)])
    focusField(`field-${path}.${at}.${router ? 'title' : 'when.0.left'}`)
  }
  return (
    <div className="rowlist">
      {items.map((item, i) => {
        const at = pointer === undefined ? undefined : `${pointer}/${i}`
        const id = ids[i]!
        const title = typeof item.title === 'string' ? item.title : ''
        const set = (key: string, next: Json | undefined): void => put(replaced(items, i, withKey(item, key, next)))
        const word = title || id || `case ${i + 1}`
        const otherwise = !router && isElse(item) && i === items.length - 1
        return (
          <FindingsRow key={i} label={`${router ? 'Route' : 'Case'} ${word}`} pointer={at}>
            {(isWrong) => (
              <>
                <div className="case__head">
                  <input
                    type="text"
                    aria-label={`Title of ${id || `case ${i + 1}`}`}
                    data-testid={`field-${path}.${i}.title`}
                    value={title}
                    placeholder={id || 'Title'}
                    readOnly={scope.readonly}
                    className="case__title"
                    onMouseDown={selectFirst}
                    onChange={(event) => set('title', event.target.value || undefined)}
                  />
                  <RowTools
                    at={i}
                    count={items.length}
                    name={word}
                    onMove={(to) => put(moved(items, i, to))}
                    onRemove={() => put(items.filter((_, j) => j !== i))}
                  />
                </div>
                {otherwise ? <p className="case__else">Else: no case above matches</p> : null}
                {router && !hasRule(item) ? <RouteValue {...props} item={item} at={i} set={set} /> : null}
                {otherwise && !('when' in item) ? null : !router || hasRule(item) ? (
                  <ConditionField
                    key={id || i}
                    label={`Expression of ${word}`}
                    path={`${path}.${i}.when`}
                    value={
                      typeof item.when === 'string'
                        ? item.when
                        : item.when === undefined || item.when === null
                          ? ''
                          : JSON.stringify(item.when)
                    }
                    empty="false"
                    placeholder={router ? 'JavaScript' : 'For example <start.amount> > 500'}
                    onChange={(text) => set('when', text)}
                    invalid={isWrong}
                  />
                ) : null}
                <div className="case__foot">
                  <span className="label">Branch id</span>
                  <CommitInput
                    mono
                    label={`Branch id of ${word}`}
                    testId={`field-${path}.${i}.id`}
                    value={id}
                    check={(text) =>
                      checkHandle(
                        text,
                        ids.filter((_, j) => j !== i),
                      )
                    }
                    onCommit={(text) => (id && props.onRenameHandle ? props.onRenameHandle(id, text) : set('id', text))}
                  />
                  {router && !scope.readonly ? (
                    <button
                      type="button"
                      className="linklike"
                      onClick={() =>
                        put(
                          replaced(
                            items,
                            i,
                            hasRule(item)
                              ? withKey(item, 'when', undefined)
                              : withKey(withKey(item, 'equals', undefined), 'when', 'false'),
                          ),
                        )
                      }
                    >
                      {hasRule(item) ? 'Compare a value' : 'Use an expression'}
                    </button>
                  ) : null}
                </div>
              </>
            )}
          </FindingsRow>
        )
      })}
      <div className="rowlist__adds">
        <AddRow
          testId={`add-${path}`}
          onClick={() =>
            add(
              router
                ? { title: `Route ${items.length + 1}` }
                : { title: `Case ${items.filter((each) => !isElse(each)).length + 1}`, when: 'false' },
              router ? 'route' : 'case',
            )
          }
        >
          {router ? 'Add route' : 'Add case'}
        </AddRow>
        {router || hasElse ? null : (
          <AddRow
            testId={`add-${path}-else`}
            onClick={() => put([...items, { id: freshId((id) => ids.includes(id), 'else'), title: 'Else' }])}
          >
            Add else
          </AddRow>
        )}
      </div>
    </div>
  )
}

function RouteValue({
  path,
  item,
  at,
  set,
  ...props
}: ControlProps & { item: JsonObject; at: number; set: (key: string, value: Json | undefined) => void }): ReactElement {
  return (
    <ValueField
      {...props}
      path={`${path}.${at}.equals`}
      label={`Value of ${String(item.id)}`}
      value={item.equals}
      hint={{ placeholder: `equals “${String(item.id)}”` }}
      schema={{}}
      ids={{ ...props.ids, invalid: false, describedBy: undefined }}
      onChange={(next) => set('equals', next)}
    />
  )
}

function isElse(item: JsonObject): boolean {
  return item.when === undefined || item.when === null
}

function hasRule(item: JsonObject): boolean {
  return item.when !== undefined && item.when !== null && item.when !== ''
}
