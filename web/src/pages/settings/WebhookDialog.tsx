// A webhook of one's own, made or changed: what a request starts, who may send, and what the sender is answered.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../net/types'
import { idFor, Part, StartsPart, TriggerForm, type Starts } from './form'
import { Choice } from './ScheduleDialog'

const AUTHS: Record<string, string> = { hmac: 'who signs with the secret', github: 'who signs as GitHub does', token: 'who sends the secret as bearer token', none: 'anybody who knows the address' }
const RESPONDS: Record<string, string> = { immediate: '202, once the run is stored', run: 'what the run answers' }
const TIMEOUT_S = 30

/** `webhook` null: a new one. `taken`: the ids there are. */
export function WebhookDialog({ webhook, taken, onDone, onClose }: { webhook: WebhookView | null; taken: ReadonlySet<string>; onDone: () => void; onClose: () => void }): ReactElement {
  const [starts, setStarts] = useState<Starts>({ workflow: webhook?.workflow ?? '', version: webhook?.version ? String(webhook.version) : '' })
  const [named, setNamed] = useState<string | null>(webhook?.id ?? null)
  const [auth, setAuth] = useState(webhook?.auth ?? 'hmac')
  const [secretEnv, setSecretEnv] = useState(webhook?.secret_env ?? '')
  const [respond, setRespond] = useState(webhook?.respond ?? 'immediate')
  const [timeout, setTimeout] = useState(String(webhook?.timeout_s ?? TIMEOUT_S))
  const id = named ?? (starts.workflow ? idFor(starts.workflow, taken) : '')
  const seconds = Number(timeout)
  const timeoutWrong = respond === 'run' && !(seconds > 0 && seconds <= 60) ? 'A number of seconds up to 60.' : null
  const idWrong = webhook === null && taken.has(id) ? 'There is a webhook of this name. Change that one, or choose another name.' : null
  const why = !starts.workflow ? 'Choose a workflow' : !id ? 'Give it a name' : idWrong ?? timeoutWrong
  const send = async (): Promise<void> => {
    await triggers.putWebhook(id, {
      workflow: starts.workflow, version: starts.version ? Number(starts.version) : null, trigger: webhook && webhook.workflow === starts.workflow ? webhook.trigger : null,
      auth, secret_env: auth === 'none' ? null : secretEnv.trim() || null, respond, enabled: webhook?.enabled ?? true, headers: webhook?.headers ?? [],
      ...(respond === 'run' ? { timeout_s: seconds } : {}),
    })
    onDone()
  }
  return (
    <TriggerForm title={webhook ? `Change ${webhook.id}` : 'New webhook'} act={webhook ? 'Save' : 'Make the webhook'} testId="webhook-form" why={why} fields={['id', 'workflow', 'version', 'secret_env', 'timeout_s']} onSend={send} onClose={onClose}>
      {(found) => (
        <>
          <StartsPart value={starts} onChange={setStarts} found={found} />
          <div className="triggerform__pair">
            <Part name="auth" label="Who may send" found={found}>{(ids) => <Choice id={ids.control} options={AUTHS} value={auth} onChange={setAuth} />}</Part>
            <Part name="respond" label="The sender is answered" found={found}>{(ids) => <Choice id={ids.control} options={RESPONDS} value={respond} onChange={setRespond} />}</Part>
          </div>
          {auth === 'none' ? <p className="notice" data-tone="wait" role="status">Anybody who knows the address can start runs.</p> : (
            <Part name="secret_env" label="Secret from the environment" found={found} about="Name of the value that is the secret. Left empty: weft makes one and shows it here.">
              {(ids) => <input type="text" id={ids.control} className="mono" data-testid="webhook-secret-env" value={secretEnv} spellCheck={false} autoComplete="off" aria-invalid={ids.invalid || undefined} aria-describedby={ids.describedBy} onChange={(event) => setSecretEnv(event.target.value)} />}
            </Part>
          )}
          {respond === 'run' ? (
            <Part name="timeout_s" label="Wait for the run (seconds)" found={found} error={timeoutWrong} about="After that the answer is 202 all the same.">
              {(ids) => <input type="text" id={ids.control} inputMode="decimal" value={timeout} aria-invalid={ids.invalid || undefined} aria-describedby={ids.describedBy} onChange={(event) => setTimeout(event.target.value)} />}
            </Part>
          ) : null}
          {webhook ? null : (
            <Part name="id" label="Name" found={found} error={idWrong} about="The end of its address. Letters, digits, _ . - only.">
              {(ids) => <input type="text" id={ids.control} className="mono" data-testid="webhook-id" value={id} spellCheck={false} autoComplete="off" aria-invalid={ids.invalid || undefined} aria-describedby={ids.describedBy} onChange={(event) => setNamed(event.target.value)} />}
            </Part>
          )}
        </>
      )}
    </TriggerForm>
  )
}
