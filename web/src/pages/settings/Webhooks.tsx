// Webhooks: their addresses and secrets, and what came in.

import type { ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../api/schemas'
import { FormAccess } from '../../forms/triggers/FormAccess'
import { WebhookAccess } from '../../forms/triggers/WebhookAccess'
import { Link } from '../../ui/navigation'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { Ago } from '../../ui/Ago'
import { ListState, usePolled } from '../parts'
import { Belongs, LastRun, OwnActions, TriggerRow, TriggerSection } from './Trigger'
import { WebhookDialog } from './WebhookDialog'

/** `admin`: may add, change and see secrets. */
export function Webhooks({ admin }: { admin: boolean }): ReactElement {
  return (
    <TriggerSection
      what="webhook"
      mayAdd={admin}
      load={triggers.webhooks}
      row={(each, onChange, onEdit) => (
        <Webhook key={each.id} webhook={each} admin={admin} onChange={onChange} onEdit={onEdit} />
      )}
      dialog={({ edited, ...rest }) => <WebhookDialog webhook={edited} {...rest} />}
    />
  )
}

const AUTHS: Record<WebhookView['auth'], string> = {
  hmac: 'Signature (HMAC)',
  github: 'GitHub signature',
  token: 'Bearer token',
  none: 'No authentication',
}

const PAGES = { form: 'Public form', chat: 'Public chat' }

function Webhook({
  webhook,
  admin,
  onChange,
  onEdit,
}: {
  webhook: WebhookView
  admin: boolean
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
          <span>{webhook.kind === 'webhook' ? AUTHS[webhook.auth] : PAGES[webhook.kind]}</span>
          {webhook.kind === 'chat' ? null : <LastRun at={last} run={run} none="No requests yet" />}
        </>
      }
      actions={
        <>
          {webhook.origin === 'document' || !admin ? null : (
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
      {webhook.kind === 'webhook' ? (
        <WebhookAccess webhook={webhook} />
      ) : (
        <FormAccess form={webhook} onChange={onChange} />
      )}
      {admin ? (
        <>
          <h3 className="label">{webhook.kind === 'chat' ? 'Last refused messages' : 'Last requests'}</h3>
          <Deliveries id={id} />
        </>
      ) : null}
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
