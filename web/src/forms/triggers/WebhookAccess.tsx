// How to send requests to a webhook: its address, its secret (loaded only when it is shown), a new secret.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { Dialog } from '../../ui/Dialog'
import { useMayNot } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf } from '../../ui/words'
import { asEvent } from './curl'
import './triggers.css'

export function WebhookAccess({ webhook }: { webhook: WebhookView }): ReactElement {
  const [secret, setSecret] = useState<string | null>(null)
  const [asking, setAsking] = useState(false)
  const why = useMayNot('admin')
  const reveal = async (): Promise<void> => {
    if (secret !== null) return setSecret(null)
    try {
      setSecret((await triggers.webhook(webhook.id)).secret)
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const copySecret = async (): Promise<void> => {
    try {
      const known = secret ?? (await triggers.webhook(webhook.id)).secret
      if (known !== null) await copyText(known, 'Copied secret')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const copyCurl = async (): Promise<void> => {
    try {
      const known = hasOwn ? (secret ?? (await triggers.webhook(webhook.id)).secret) : null
      await copyText(asEvent(webhook.url, webhook.auth, known), 'Copied curl')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const rotate = async (): Promise<void> => {
    setAsking(false)
    try {
      setSecret(await triggers.rotate(webhook.id))
      toast('Secret replaced', 'ok')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  const hasOwn = webhook.auth !== 'none' && webhook.secret_env === null
  return (
    <dl className="access" data-testid={`access-${webhook.id}`}>
      <div>
        <dt>URL</dt>
        <dd>
          <code className="access__text">{webhook.url}</code>
          <Button kind="bare" icon="copy" iconOnly onClick={() => void copyText(webhook.url, 'Copied URL')}>
            Copy URL
          </Button>
        </dd>
      </div>
      <div>
        <dt>Secret</dt>
        <dd>
          {hasOwn ? (
            <>
              <code className="access__text" data-testid="secret">
                {secret ?? 'whsec_ ...'}
              </code>
              <Button kind="bare" aria-pressed={secret !== null} why={why} onClick={() => void reveal()}>
                {secret === null ? 'Show' : 'Hide'}
              </Button>
              <Button kind="bare" icon="copy" iconOnly why={why} onClick={() => void copySecret()}>
                Copy secret
              </Button>
              <Button kind="bare" why={why} onClick={() => setAsking(true)}>
                Replace
              </Button>
            </>
          ) : webhook.secret_env ? (
            <span>
              Value of <code>{webhook.secret_env}</code>
            </span>
          ) : (
            <span className="quiet">None. Anyone with the URL can start runs.</span>
          )}
        </dd>
      </div>
      {webhook.secret_env === null ? (
        <div>
          <dt>Try it</dt>
          <dd>
            <Button kind="bare" icon="copy" why={hasOwn ? why : null} onClick={() => void copyCurl()}>
              Copy as curl
            </Button>
          </dd>
        </div>
      ) : null}
      {webhook.problem ? (
        <p className="notice" data-tone="err" role="alert">
          {webhook.problem}
        </p>
      ) : null}
      <Dialog
        title="Replace secret"
        open={asking}
        onClose={() => setAsking(false)}
        foot={
          <>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
            <Button kind="danger" data-testid="rotate" onClick={() => void rotate()}>
              Replace secret
            </Button>
          </>
        }
      >
        <p>The old secret stops working at once. Requests are rejected until the sender uses the new one.</p>
      </Dialog>
    </dl>
  )
}
