// The tools of an agent: one row for each, with its kind and whether it asks first; opened, its settings. A tool is found in four
// tabs, and its arguments follow from what was chosen.

import { useContext, useEffect, useRef, useState, type ComponentType, type ReactElement } from 'react'
import type { Json, JsonObject } from '../../api/schemas'
import { isObject } from '../../net/json'
import { Icon } from '../../ui/icons'
import { DrawnContext } from './calm'
import type { ControlProps, FieldProps } from './control'
import { moved, replaced, RowTools } from './rows'
import { findingsAt, useFieldScope } from './scope'
import { ToolForm } from './ToolForm'
import { ToolPicker } from './ToolPicker'
import { asksWords, toolIcon, toolWords } from './tools'

interface ToolsProps extends ControlProps {
  /** The component for one field of a tool: `Field`, which draws this. */
  field: ComponentType<FieldProps>
}

/** A tool that was there before shows what is wrong with it when it is opened. */
const OPENED = { current: false }

export function ToolsField({ field, value, onChange, path, pointer, schema, label }: ToolsProps): ReactElement {
  const { readonly, specs, diagnostics, calm } = useFieldScope()
  const drawn = useContext(DrawnContext)
  const [open, setOpen] = useState<number | null>(null)
  const [picking, setPicking] = useState(false)
  const [added, setAdded] = useState<number | null>(null)
  const frame = useRef<HTMLDivElement>(null)
  // A new tool is shown from its top, with its name to be typed over.
  useEffect(() => {
    const item = added === null ? null : frame.current?.querySelectorAll('.toolitem')[added]
    if (!item) return
    item.scrollIntoView({ block: 'start' })
    const name = item.querySelector<HTMLTextAreaElement>('.toolitem__form textarea, .toolitem__form input')
    name?.focus({ preventScroll: true })
    name?.select()
  }, [added])
  const items: Json[] = Array.isArray(value) ? value : []
  const tools = items.map((item): JsonObject => (isObject(item) ? item : {}))
  return (
    <div ref={frame} className="tools">
      {tools.map((tool, i) => {
        const name = typeof tool.name === 'string' && tool.name ? tool.name : `Tool ${i + 1}`
        const at = pointer === undefined ? undefined : `${pointer}/${i}`
        const wrong =
          !calm &&
          i !== added &&
          at !== undefined &&
          findingsAt(diagnostics, at, true).some((each) => each.severity === 'error')
        return (
          <div key={i} className="toolitem" role="group" aria-label={name} data-open={open === i || undefined}>
            <div className="toolitem__head">
              <button
                type="button"
                className="toolitem__row"
                data-testid={`field-${path}.${i}`}
                aria-expanded={open === i}
                onClick={() => {
                  setAdded(null)
                  setOpen(open === i ? null : i)
                }}
              >
                <span className="toolitem__plate">
                  <Icon name={toolIcon(tool, specs)} size={14} />
                </span>
                <span className="toolitem__words">
                  <b>{name}</b>
                  <span>{toolWords(tool, specs)}</span>
                </span>
                {wrong ? <Icon name="failed" size={14} label="has errors" /> : null}
                {asksWords(tool) ? <span className="toolitem__asks">{asksWords(tool)}</span> : null}
              </button>
              <RowTools
                at={i}
                count={items.length}
                name={name}
                onMove={(to) => {
                  setOpen(open === i ? to : open === to ? i : open)
                  onChange(moved(items, i, to))
                }}
                onRemove={() => {
                  setOpen(null)
                  onChange(replaced(items, i, undefined))
                }}
              />
            </div>
            {open === i ? (
              <DrawnContext value={i === added ? drawn : OPENED}>
                <ToolForm
                  field={field}
                  tool={tool}
                  parts={schema.items?.properties ?? {}}
                  path={`${path}.${i}`}
                  pointer={at}
                  onChange={(next) => onChange(replaced(items, i, next))}
                />
              </DrawnContext>
            ) : null}
          </div>
        )
      })}
      {readonly ? null : (
        <button type="button" className="tools__add" data-testid={`add-${path}`} onClick={() => setPicking(true)}>
          <Icon name="plus" size={14} />
          Add a tool
        </button>
      )}
      {picking ? (
        <ToolPicker
          label={label}
          tools={tools}
          onClose={() => setPicking(false)}
          onChoose={(tool) => {
            setPicking(false)
            setOpen(items.length)
            setAdded(items.length)
            onChange([...items, tool])
          }}
        />
      ) : null}
    </div>
  )
}
