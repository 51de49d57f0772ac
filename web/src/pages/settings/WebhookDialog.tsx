// A webhook of one's own, made or changed: what a request starts, who may send, and what the sender is answered.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../net/types'
import { idFor, Part, StartsPart, TriggerForm, type Starts } from './form'
import { Choice } from './ScheduleDialog'

const AUTHS: Record<WebhookView['auth'], string> = {
  hmac: 'Signature (HMAC)',
  github: 'GitHub signature',
  token: 'Bearer token',
  none: 'None',
}
const RESPONDS: Record<WebhookView['respond'], string> = { immediate: 'Immediately (202)', run: 'When the run ends' }
const TIMEOUT_S = 30

/** `webhook` null: a new one. `taken`: the ids there are. */
export function WebhookDialog({
  webhook,
  taken,
  onDone,
  onClose,
}: {
  webhook: WebhookView | null
  taken: ReadonlySet<string>
  onDone: () => void
  onClose: () => void
}): ReactElement {
  const [starts, setStarts] = useState<Starts>({
    workflow: webhook?.workflow ?? '',
    version: webhook?.version ? String(webhook.version) : '',
  })
  const [named, setNamed] = useState<string | null>(webhook?.id ?? null)
  const [auth, setAuth] = useState(webhook?.auth ?? 'hmac')
  const [secretEnv, setSecretEnv] = useState(webhook?.secret_env ?? '')
  const [respond, setRespond] = useState(webhook?.respond ?? 'immediate')
  const [timeout, setTimeout] = useState(String(webhook?.timeout_s ?? TIMEOUT_S))
  const id = named ?? (starts.workflow ? idFor(starts.workflow, taken) : '')
  const seconds = Number(timeout)
  const timeoutWrong =
    respond === 'run' && !(seconds > 0 && seconds <= 60) ? 'Enter a number of seconds up to 60.' : null
  const idWrong = webhook === null && taken.has(id) ? 'Another webhook has this name.' : null
  const why = !starts.workflow ? 'Choose a workflow' : !id ? 'Enter a name' : (idWrong ?? timeoutWrong)
  const send = async (): Promise<void> => {
    await triggers.putWebhook(id, {
      workflow: starts.workflow,
      version: starts.version ? Number(starts.version) : null,
      trigger: webhook && webhook.workflow === starts.workflow ? webhook.trigger : null,
      auth,
      secret_env: auth === 'none' ? null : secretEnv.trim() || null,
      respond,
      enabled: webhook?.enabled ?? true,
      headers: webhook?.headers ?? [],
      ...(respond === 'run' ? { timeout_s: seconds } : {}),
    })
    onDone()
  }
  return (
    <TriggerForm
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
          <StartsPart value={starts} onChange={setStarts} found={found} />
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
              {(ids) => (
                <input
                  type="text"
                  id={ids.control}
                  className="mono"
                  data-testid="webhook-secret-env"
                  value={secretEnv}
                  spellCheck={false}
                  autoComplete="off"
                  aria-invalid={ids.invalid || undefined}
                  aria-describedby={ids.describedBy}
                  onChange={(event) => setSecretEnv(event.target.value)}
                />
              )}
            </Part>
          )}
          {respond === 'run' ? (
            <Part
              name="timeout_s"
              label="Wait for the run (seconds)"
              found={found}
              error={timeoutWrong}
              about="If the run takes longer, the response is 202."
            >
              {(ids) => (
                <input
                  type="text"
                  id={ids.control}
                  inputMode="decimal"
                  value={timeout}
                  aria-invalid={ids.invalid || undefined}
                  aria-describedby={ids.describedBy}
                  onChange={(event) => setTimeout(event.target.value)}
                />
              )}
            </Part>
          ) : null}
          {webhook ? null : (
            <Part
              name="id"
              label="Name"
              found={found}
              error={idWrong}
              about="Last part of the URL. Letters, digits, _ . and - only."
            >
              {(ids) => (
                <input
                  type="text"
                  id={ids.control}
                  className="mono"
                  data-testid="webhook-id"
                  value={id}
                  spellCheck={false}
                  autoComplete="off"
                  aria-invalid={ids.invalid || undefined}
                  aria-describedby={ids.describedBy}
                  onChange={(event) => setNamed(event.target.value)}
                />
              )}
            </Part>
          )}
        </>
      )}
    </TriggerForm>
  )
}
