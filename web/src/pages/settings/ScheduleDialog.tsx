// A schedule made or changed in the settings: what runs, when (with its next times from the server), and with which input.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { JsonObject, ScheduleView } from '../../api/schemas'
import { readJson } from '../../forms/fields/JsonText'
import { printJson } from '../../forms/json/print'
import { cronWords } from '../../forms/triggers/cron'
import { CronField } from '../../forms/triggers/CronField'
import { Moments } from '../../forms/triggers/Moments'
import { ZoneField } from '../../forms/triggers/ZoneField'
import { useData } from '../../ui/useData'
import { useLater } from '../../ui/useLater'
import { refusalOf, EditDialog } from './EditDialog'
import { Choice, NamePart, Part, TargetPart, useTarget } from './form'

const OVERLAPS: Record<ScheduleView['overlap'], string> = {
  skip: 'Skip this time',
  queue: 'Start after it ends',
  allow: 'Start another run',
}
const CATCH_UPS: Record<ScheduleView['catch_up'], string> = {
  one: 'Run once',
  none: 'Skip all',
  all: 'Run all, at most the last 100',
}

/** `schedule` null: a new one. `ids`: those in use. */
export function ScheduleDialog({
  schedule,
  ids,
  onDone,
  onClose,
}: {
  schedule: ScheduleView | null
  ids: ReadonlySet<string>
  onDone: () => void
  onClose: () => void
}): ReactElement {
  const target = useTarget('schedule', schedule, ids)
  const [cron, setCron] = useState(schedule?.cron ?? '0 9 * * MON-FRI')
  const [tz, setTz] = useState(schedule?.tz ?? ownZone())
  const [input, setInput] = useState(() =>
    schedule && isObject(schedule.input) && Object.keys(schedule.input).length ? printJson(schedule.input) : '',
  )
  const [overlap, setOverlap] = useState(schedule?.overlap ?? 'skip')
  const [catchUp, setCatchUp] = useState(schedule?.catch_up ?? 'one')
  const read = readJson(input)
  const inputWrong = !read.ok
    ? `Invalid JSON: ${read.why}`
    : read.value !== undefined && !isObject(read.value)
      ? 'It must be an object, such as {"amount": 5}.'
      : null
  const why = target.why ?? (cron.trim() ? inputWrong : 'Enter a cron expression.')
  const send = async (): Promise<void> => {
    await triggers.putSchedule(target.id, {
      ...target.stored,
      cron: cron.trim(),
      tz: tz.trim() || 'UTC',
      input: read.ok && isObject(read.value) ? read.value : {},
      overlap,
      catch_up: catchUp,
      enabled: schedule?.enabled ?? true,
    })
    onDone()
  }
  return (
    <EditDialog
      title={schedule ? `Edit ${schedule.id}` : 'New schedule'}
      act={schedule ? 'Save' : 'Create schedule'}
      testId="schedule-form"
      why={why}
      fields={['id', 'workflow', 'version', 'cron', 'tz', 'input']}
      onSend={send}
      onClose={onClose}
    >
      {(found) => (
        <>
          <TargetPart form={target} found={found} />
          <div className="triggerform__pair">
            <Part name="cron" label="Repeat" needed found={found}>
              {(ids) => (
                <CronField
                  id={ids.control}
                  testId="schedule-cron"
                  value={cron}
                  onChange={setCron}
                  invalid={ids.invalid}
                  describedBy={ids.describedBy}
                />
              )}
            </Part>
            <Part name="tz" label="Time zone" found={found}>
              {(ids) => (
                <ZoneField
                  id={ids.control}
                  testId="schedule-tz"
                  value={tz}
                  onChange={setTz}
                  invalid={ids.invalid}
                  describedBy={ids.describedBy}
                />
              )}
            </Part>
          </div>
          <NextTimes cron={cron} tz={tz} />
          <Part
            name="input"
            label="Input"
            found={found}
            error={inputWrong}
            about="JSON object. Leave empty for no input."
          >
            {(ids) => (
              <textarea
                id={ids.control}
                className="mono"
                rows={3}
                data-testid="schedule-input"
                value={input}
                spellCheck={false}
                aria-invalid={ids.invalid || undefined}
                aria-describedby={ids.describedBy}
                onChange={(event) => setInput(event.target.value)}
              />
            )}
          </Part>
          <div className="triggerform__pair">
            <Part name="overlap" label="If a run is still active" found={found}>
              {(ids) => <Choice id={ids.control} options={OVERLAPS} value={overlap} onChange={setOverlap} />}
            </Part>
            <Part name="catch_up" label="Missed runs" found={found}>
              {(ids) => <Choice id={ids.control} options={CATCH_UPS} value={catchUp} onChange={setCatchUp} />}
            </Part>
          </div>
          {schedule ? null : (
            <NamePart form={target} found={found} testId="schedule-id" about="Letters, digits, _ . and - only." />
          )}
        </>
      )}
    </EditDialog>
  )
}

const SHOWN = 3

/** The next times of the typed expression, or what the server says is wrong with it. */
function NextTimes({ cron, tz }: { cron: string; tz: string }): ReactElement {
  const expr = useLater(cron.trim(), 300)
  const zone = useLater(tz.trim() || 'UTC', 300)
  const next = useData(async () => (expr ? triggers.upcoming(expr, zone) : []), [expr, zone])
  const words = cronWords(expr)
  return (
    <div className="triggerform__next" aria-live="polite" data-testid="schedule-next">
      <span className="label">Next runs</span>
      {next.error ? (
        <p className="trigger__wrong">{refusalOf(next.error).message}</p>
      ) : (
        <>
          {words ? (
            <p>
              {words} ({zone})
            </p>
          ) : null}
          {next.value ? (
            next.value.length ? (
              <Moments times={next.value.slice(0, SHOWN)} tz={zone} />
            ) : (
              <p className="quiet">None</p>
            )
          ) : null}
        </>
      )}
    </div>
  )
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'
