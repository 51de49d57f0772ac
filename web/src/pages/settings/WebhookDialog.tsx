// A webhook made or changed in the settings: what a request starts, who may send it, and what the response is.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { Json, WebhookView } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { Field } from '../../forms/fields/Field'
import { EditDialog } from './EditDialog'
import { Choice, CodeInput, NamePart, Part, TargetPart, useTarget } from './form'

const AUTHS: Record<WebhookView['auth'], string> = {
  hmac: 'Signature (HMAC)',
  github: 'GitHub signature',
  token: 'Bearer token',
  none: 'None',
}
const RESPONDS: Record<WebhookView['respond'], string> = { immediate: 'Immediately (202)', run: 'When the run ends' }
const TIMEOUT: JsonSchema = {
  type: 'number',
  // The unit is chosen beside the field.
  title: 'Wait for the run (seconds)',
  description: 'If the run takes longer, the response is 202.',
  default: 30,
  maximum: 60,
}

/** `webhook` null: a new one. `ids`: those in use. */
export function WebhookDialog({
  webhook,
  ids,
  onDone,
  onClose,
}: {
  webhook: WebhookView | null
  ids: ReadonlySet<string>
  onDone: () => void
  onClose: () => void
}): ReactElement {
  const target = useTarget('webhook', webhook, ids)
  const [auth, setAuth] = useState(webhook?.auth ?? 'hmac')
  const [secretEnv, setSecretEnv] = useState(webhook?.secret_env ?? '')
  const [respond, setRespond] = useState(webhook?.respond ?? 'immediate')
  const [timeout, setTimeout] = useState<Json | undefined>(webhook?.timeout_s ?? undefined)
  const seconds = timeout ?? 30
  const timeoutWrong =
    respond === 'run' && !(typeof seconds === 'number' && seconds > 0 && seconds <= 60)
      ? 'Enter a time of up to 60 seconds.'
      : null
  const why = target.why ?? timeoutWrong
  const send = async (): Promise<void> => {
    await triggers.putWebhook(target.id, {
      ...target.stored,
      auth,
      secret_env: auth === 'none' ? null : secretEnv.trim() || null,
      respond,
      enabled: webhook?.enabled ?? true,
      headers: webhook?.headers ?? [],
      ...(respond === 'run' && typeof seconds === 'number' ? { timeout_s: seconds } : {}),
    })
    onDone()
  }
  return (
    <EditDialog
      title={webhook ? `Edit ${webhook.id}` : 'New webhook'}
      act={webhook ? 'Save' : 'Create webhook'}
      testId="webhook-form"
      why={why}
      fields={['id', 'workflow', 'version', 'secret_env', 'timeout_s']}
      onSend={send}
      onClose={onClose}
    >
      {(found) => (
        <>
          <TargetPart form={target} found={found} />
          <div className="triggerform__pair">
            <Part name="auth" label="Authentication" found={found}>
              {(ids) => <Choice id={ids.control} options={AUTHS} value={auth} onChange={setAuth} />}
            </Part>
            <Part name="respond" label="Respond" found={found}>
              {(ids) => <Choice id={ids.control} options={RESPONDS} value={respond} onChange={setRespond} />}
            </Part>
          </div>
          {auth === 'none' ? (
            <p className="notice" data-tone="wait" role="status">
              Anyone with the URL can start runs.
            </p>
          ) : (
            <Part
              name="secret_env"
              label="Secret from the environment"
              found={found}
              about="Name of an environment value. Leave empty to create a secret."
            >
              {(ids) => <CodeInput ids={ids} testId="webhook-secret-env" value={secretEnv} onChange={setSecretEnv} />}
            </Part>
          )}
          {respond === 'run' ? (
            <Field
              type={null}
              name="timeout_s"
              path="timeout_s"
              schema={TIMEOUT}
              value={timeout}
              onChange={setTimeout}
              error={timeoutWrong ?? (found?.field === 'timeout_s' ? found.message : null)}
            />
          ) : null}
          {webhook ? null : (
            <NamePart
              form={target}
              found={found}
              testId="webhook-id"
              about="Last part of the URL. Letters, digits, _ . and - only."
            />
          )}
        </>
      )}
    </EditDialog>
  )
}
