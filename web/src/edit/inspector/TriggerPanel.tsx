// Below the settings of a schedule, a webhook or a public page: when it would be due, and what the stored workflow has of it. What is edited here
// counts from the next version on; this says what counts now.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { ApiError } from '../../net/api'
import { triggers } from '../../net/triggers'
import type { JsonObject } from '../../api/schemas'
import { Link } from '../../ui/navigation'
import { docStore } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { useData } from '../../ui/useData'
import { useLater } from '../../ui/useLater'
import { Ago } from '../../ui/Ago'
import { sentence } from '../../ui/words'
import { cronWords } from '../../forms/triggers/cron'
import { FormAccess } from '../../forms/triggers/FormAccess'
import { Moments } from '../../forms/triggers/Moments'
import { PushState } from '../../forms/triggers/PushState'
import { WebhookAccess } from '../../forms/triggers/WebhookAccess'
import { Section } from './parts'
import '../../forms/triggers/triggers.css'

export function TriggerPanel({
  id,
  type,
  params,
}: {
  id: string
  type: string
  params: JsonObject
}): ReactElement | null {
  if (type === 'schedule') return <SchedulePanel id={id} params={params} />
  if (type.startsWith('event.')) return <SchedulePanel id={id} params={{}} polls />
  if (type === 'form_trigger') return <PagePanel id={id} what="form" open="Open for submissions." />
  if (type === 'chat_trigger') return <PagePanel id={id} what="chat" open="Open for messages." />
  return type === 'webhook' ? <WebhookPanel id={id} /> : null
}

function SchedulePanel({
  id,
  params,
  polls = false,
}: {
  id: string
  params: JsonObject
  polls?: boolean
}): ReactElement {
  const cron = useLater(typeof params.cron === 'string' ? params.cron.trim() : '')
  const tz = useLater(typeof params.tz === 'string' && params.tz ? params.tz : 'UTC')
  const next = useData(async () => (cron ? triggers.upcoming(cron, tz) : []), [cron, tz])
  const stored = useStored(
    async (workflow) =>
      (await triggers.schedules(workflow)).find((each) => each.trigger === id && each.origin === 'document') ?? null,
    id,
  )
  const words = cronWords(cron)
  return (
    <>
      {cron ? (
        <Section label="Next runs">
          {words ? (
            <p className="part__words">
              {words} ({tz})
            </p>
          ) : null}
          {next.error ? (
            <p className="quiet">
              {next.error instanceof ApiError && next.error.status === 422
                ? next.error.message
                : 'The next runs are not available.'}
            </p>
          ) : next.value ? (
            <Moments times={next.value} tz={tz} />
          ) : null}
        </Section>
      ) : null}
      <Stored what="schedule" known={stored.value !== null} loading={stored.loading} anchor="schedules">
        {stored.value ? (
          <>
            <p>
              {stored.value.enabled ? (
                <>
                  {polls ? 'Polls' : 'Enabled'}
                  {stored.value.next_run_at_ms === null ? (
                    ''
                  ) : (
                    <>
                      , next <Ago at={stored.value.next_run_at_ms} to />
                    </>
                  )}
                  .
                </>
              ) : (
                'Disabled.'
              )}
              {polls || (stored.value.cron === cron && stored.value.tz === tz) ? (
                ''
              ) : (
                <>
                  {' '}
                  The published version uses <code>{stored.value.cron}</code> ({stored.value.tz}).
                </>
              )}
              {stored.value.last_run_id ? (
                <>
                  {' '}
                  The <Link to={`/runs/${stored.value.last_run_id}`}>last run</Link> was{' '}
                  {stored.value.last_run_at_ms === null ? 'started' : <Ago at={stored.value.last_run_at_ms} />}.
                </>
              ) : null}
              {stored.value.error ? <span className="ref__wrong"> {sentence(stored.value.error)}</span> : null}
            </p>
            {stored.value.push && stored.value.enabled ? (
              <p>
                <PushState push={stored.value.push} />
              </p>
            ) : null}
          </>
        ) : null}
      </Stored>
    </>
  )
}

function WebhookPanel({ id }: { id: string }): ReactElement {
  const stored = useStored(
    async (workflow) =>
      (await triggers.webhooks(workflow)).find((each) => each.trigger === id && each.origin === 'document') ?? null,
    id,
  )
  return (
    <Stored what="webhook" known={stored.value !== null} loading={stored.loading} anchor="webhooks">
      {stored.value ? (
        <>
          <WebhookAccess webhook={stored.value} />
          <p>
            {stored.value.enabled ? 'Enabled.' : 'Disabled.'}
            {stored.value.last_run_id ? (
              <>
                {' '}
                The <Link to={`/runs/${stored.value.last_run_id}`}>last run</Link> was{' '}
                {stored.value.last_run_at_ms === null ? 'started' : <Ago at={stored.value.last_run_at_ms} />}.
              </>
            ) : null}
          </p>
        </>
      ) : null}
    </Stored>
  )
}

function PagePanel({ id, what, open }: { id: string; what: string; open: string }): ReactElement {
  const stored = useStored(
    async (workflow) =>
      (await triggers.webhooks(workflow)).find((each) => each.trigger === id && each.origin === 'document') ?? null,
    id,
  )
  return (
    <Stored what={what} known={stored.value !== null} loading={stored.loading} anchor="webhooks">
      {stored.value ? (
        <>
          <FormAccess form={stored.value} onChange={stored.reload} />
          <p>
            {stored.value.enabled ? open : 'Closed.'}
            {stored.value.last_run_id ? (
              <>
                {' '}
                The <Link to={`/runs/${stored.value.last_run_id}`}>last run</Link> was{' '}
                {stored.value.last_run_at_ms === null ? 'started' : <Ago at={stored.value.last_run_at_ms} />}.
              </>
            ) : null}
          </p>
        </>
      ) : null}
    </Stored>
  )
}

const WHEN_PUBLISHED: Record<string, string> = {
  webhook: 'The URL and the secret are created when you publish.',
  form: 'The page gets its public link when you publish.',
  chat: 'The page gets its public link when you publish.',
}

function Stored({
  what,
  known,
  loading,
  anchor,
  children,
}: {
  what: string
  known: boolean
  loading: boolean
  anchor: string
  children: ReactElement | null
}): ReactElement {
  return (
    <Section
      label="Published version"
      tools={
        <Link to={`/settings#${anchor}`} className="linklike">
          All {what}s
        </Link>
      }
    >
      <div className="stored" data-testid={`stored-${what}`}>
        {known ? (
          children
        ) : loading ? null : (
          <>
            <p className="quiet">{WHEN_PUBLISHED[what] ?? 'Starts when you publish.'}</p>
            {what === 'webhook' ? (
              <Button icon="webhook" onClick={() => uiStore.setState({ playground: true })}>
                Try it before publishing
              </Button>
            ) : null}
          </>
        )}
      </div>
    </Section>
  )
}

/** What the server has for this block in the workflow the draft belongs to; asked again after a version is published. */
function useStored<T>(load: (workflow: string) => Promise<T | null>, block: string) {
  const workflow = useStore(docStore, (s) => s.baseName)
  const version = useStore(docStore, (s) => s.baseVersion)
  return useData(async () => (workflow === null ? null : load(workflow)), [workflow, version, block])
}
