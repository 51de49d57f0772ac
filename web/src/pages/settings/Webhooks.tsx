// Webhooks: their addresses and secrets, and what came in.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../net/types'
import { copyText, WebhookAccess } from '../../panels/triggers/WebhookAccess'
import { Link } from '../../ui/navigation'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Ago } from '../../ui/Ago'
import { ListState, Stale, usePolled } from '../parts'
import { Belongs, OwnActions, TriggerRow } from './Trigger'
import { WebhookDialog } from './WebhookDialog'

export function Webhooks(): ReactElement {
  const data = usePolled(() => triggers.webhooks(), [], 15_000)
  const [form, setForm] = useState<WebhookView | 'new' | null>(null)
  const add = (): void => setForm('new')
  return (
    <section aria-labelledby="set-webhooks" id="webhooks">
      <div className="settings__head">
        <h2 id="set-webhooks">Webhooks</h2>
        {data.value?.length ? (
          <Button icon="plus" onClick={add}>
            New webhook
          </Button>
        ) : null}
      </div>
      <Stale data={data} />
      {data.value?.length ? (
        <ul className="rows triggers">
          {data.value.map((each) => (
            <Webhook key={each.id} webhook={each} onChange={data.reload} onEdit={() => setForm(each)} />
          ))}
        </ul>
      ) : (
        <ListState data={data} empty>
          <EmptyState icon="webhook" title="No webhooks">
            <p>Publish a workflow that starts with a Webhook block, or create a webhook here.</p>
            <Button icon="plus" onClick={add}>
              New webhook
            </Button>
          </EmptyState>
        </ListState>
      )}
      {form === null ? null : (
        <WebhookDialog
          webhook={form === 'new' ? null : form}
          ids={new Set(data.value?.map((each) => each.id))}
          onDone={data.reload}
          onClose={() => setForm(null)}
        />
      )}
    </section>
  )
}

const AUTHS: Record<WebhookView['auth'], string> = {
  hmac: 'Signature (HMAC)',
  github: 'GitHub signature',
  token: 'Bearer token',
  none: 'No authentication',
}

function Webhook({
  webhook,
  onChange,
  onEdit,
}: {
  webhook: WebhookView
  onChange: () => void
  onEdit: () => void
}): ReactElement {
  const { id, last_run_at_ms: last, last_run_id: run } = webhook
  return (
    <TriggerRow
      id={id}
      enabled={webhook.enabled}
      error={webhook.problem}
      title={
        <Belongs
          id={id}
          workflow={webhook.workflow}
          block={webhook.trigger}
          version={webhook.version}
          origin={webhook.origin}
        />
      }
      facts={
        <>
          <code className="trigger__url">{webhook.url}</code>
          <span>{AUTHS[webhook.auth]}</span>
          <span>
            {last === null ? (
              <span className="quiet">No requests yet</span>
            ) : (
              <>
                Last{' '}
                {run ? (
                  <Link to={`/runs/${run}`}>
                    <Ago at={last} />
                  </Link>
                ) : (
                  <Ago at={last} />
                )}
              </>
            )}
          </span>
        </>
      }
      actions={
        <>
          {webhook.origin === 'document' ? null : (
            <OwnActions
              what="webhook"
              id={id}
              note="Its URL stops working."
              onEdit={onEdit}
              onDelete={() => triggers.deleteWebhook(id).then(onChange)}
            />
          )}
          <Button icon="copy" onClick={() => void copyText(webhook.url, 'Copied URL')}>
            Copy URL
          </Button>
        </>
      }
      onSwitch={(on) => triggers.switchWebhook(id, on).then(onChange)}
    >
      <WebhookAccess webhook={webhook} />
      <h3 className="label">Last requests</h3>
      <Deliveries id={id} />
    </TriggerRow>
  )
}

const SHOWN = 20

function Deliveries({ id }: { id: string }): ReactElement {
  const detail = usePolled(() => triggers.webhook(id), [id], 5000)
  const list = detail.value?.deliveries
  if (!list?.length)
    return (
      <ListState data={detail} empty>
        <p className="quiet">None yet</p>
      </ListState>
    )
  return (
    <ol className="moments" data-testid="deliveries">
      {list.slice(0, SHOWN).map((each, i) => (
        <li key={`${each.at_ms} ${i}`}>
          <Ago at={each.at_ms} />{' '}
          {each.run ? (
            <Link to={`/runs/${each.run}`}>{each.outcome}</Link>
          ) : (
            <span className="trigger__wrong">{each.outcome}</span>
          )}
          {each.delivery ? <code className="quiet"> {each.delivery}</code> : null}
        </li>
      ))}
    </ol>
  )
}
