// Schedules: what is due when, whether it worked, on and off, a run now.

import type { ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { ScheduleView } from '../../api/schemas'
import { CronWords, momentIn, Moments } from '../../forms/triggers/Moments'
import { PushState } from '../../forms/triggers/PushState'
import { Link, navigate } from '../../ui/navigation'
import { Button } from '../../ui/Button'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { Ago } from '../../ui/Ago'
import { ListState } from '../parts'
import { messageOf } from '../../ui/words'
import { ScheduleDialog } from './ScheduleDialog'
import { Belongs, LastRun, OwnActions, TriggerRow, TriggerSection } from './Trigger'

export function Schedules({ editor }: { editor: boolean }): ReactElement {
  return (
    <TriggerSection
      what="schedule"
      mayAdd={editor}
      load={triggers.schedules}
      row={(each, onChange, onEdit) => (
        <Schedule key={each.id} schedule={each} editor={editor} onChange={onChange} onEdit={onEdit} />
      )}
      dialog={({ edited, ...rest }) => <ScheduleDialog schedule={edited} {...rest} />}
    />
  )
}

function Schedule({
  schedule,
  editor,
  onChange,
  onEdit,
}: {
  schedule: ScheduleView
  /** Whether who is signed in may change and run it. */
  editor: boolean
  onChange: () => void
  onEdit: () => void
}): ReactElement {
  const { id, next_run_at_ms: next, last_run_at_ms: last, last_run_id: run } = schedule
  const runNow = async (): Promise<void> => {
    try {
      const started = await triggers.runSchedule(id)
      toast('Run started', 'ok', { label: 'Open', onSelect: () => navigate(`/runs/${started.run}`) })
      onChange()
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <TriggerRow
      id={id}
      enabled={schedule.enabled}
      error={
        schedule.error
          ? `${schedule.polls ? 'The last poll failed' : 'The last run could not start'}: ${schedule.error}`
          : null
      }
      title={
        <Belongs
          id={id}
          workflow={schedule.workflow}
          block={schedule.trigger}
          version={schedule.version}
          origin={schedule.origin}
        />
      }
      facts={
        <>
          <CronWords cron={schedule.cron} tz={schedule.tz} />
          <span>
            {next === null ? (
              schedule.enabled ? (
                'No more runs'
              ) : (
                'Disabled'
              )
            ) : (
              <>
                Next <Ago at={next} to /> <span className="mono quiet">{momentIn(next, schedule.tz)}</span>
              </>
            )}
          </span>
          {schedule.push && schedule.enabled ? (
            <span>
              <PushState push={schedule.push} />
            </span>
          ) : null}
          <LastRun at={last} run={run} none="Not run yet" />
          {schedule.queued_at_ms === null || schedule.queued_at_ms === undefined ? null : (
            <span className="quiet">1 run is queued</span>
          )}
        </>
      }
      actions={
        editor ? (
          <>
            {schedule.origin === 'document' ? null : (
              <OwnActions
                what="schedule"
                id={id}
                note="It will not run again."
                onEdit={onEdit}
                onDelete={() => triggers.deleteSchedule(id).then(onChange)}
              />
            )}
            <Button changes onClick={() => void runNow()}>
              Run now
            </Button>
          </>
        ) : null
      }
      onSwitch={(on) => triggers.switchSchedule(id, on).then(onChange)}
    >
      <Details id={id} schedule={schedule} />
    </TriggerRow>
  )
}

const OUTCOMES: Record<string, string> = {
  started: 'Started',
  skipped: 'Skipped: a run was active',
  queued: 'Queued',
  missed: 'Missed',
  failed: 'Could not start',
}
const FIRES_SHOWN = 10

function Details({ id, schedule }: { id: string; schedule: ScheduleView }): ReactElement {
  const detail = useData(() => triggers.schedule(id), [id, schedule.last_run_at_ms, schedule.enabled])
  return (
    <div className="trigger__columns">
      <div>
        <h3 className="label">Next runs</h3>
        {schedule.upcoming_ms.length ? (
          <Moments times={schedule.upcoming_ms} tz={schedule.tz} />
        ) : (
          <p className="quiet">None while disabled</p>
        )}
      </div>
      <div>
        <h3 className="label">Last runs</h3>
        {detail.value ? (
          detail.value.fires.length ? (
            <ol className="moments">
              {detail.value.fires.slice(0, FIRES_SHOWN).map((fire) => (
                <li key={`${fire.due_ms} ${fire.at_ms}`}>
                  <span className="mono">{momentIn(fire.due_ms, schedule.tz)}</span>{' '}
                  {fire.run ? (
                    <Link to={`/runs/${fire.run}`}>{OUTCOMES[fire.outcome] ?? fire.outcome}</Link>
                  ) : (
                    <span className="quiet">{OUTCOMES[fire.outcome] ?? fire.outcome}</span>
                  )}
                  {fire.error ? <span className="trigger__wrong">: {fire.error}</span> : null}
                </li>
              ))}
            </ol>
          ) : (
            <p className="quiet">None yet</p>
          )
        ) : (
          <ListState data={detail} empty={false}>
            {null}
          </ListState>
        )}
      </div>
    </div>
  )
}
