// The public link of a form or a chat: copy it, open it, or replace it by another one.

import { useState, type ReactElement } from 'react'
import { triggers } from '../../net/triggers'
import type { WebhookView } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { Dialog } from '../../ui/Dialog'
import { useMayNot } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf } from '../../ui/words'
import './triggers.css'

export function FormAccess({ form, onChange }: { form: WebhookView; onChange: () => void }): ReactElement {
  const [asking, setAsking] = useState(false)
  const why = useMayNot('admin')
  const replace = async (): Promise<void> => {
    setAsking(false)
    try {
      await triggers.rotate(form.id)
      onChange()
      toast('Link replaced', 'ok')
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <dl className="access" data-testid={`access-${form.id}`}>
      <div>
        <dt>Link</dt>
        <dd>
          <a
            className="access__text"
            data-testid="form-link"
            href={new URL(form.url, location.href).pathname}
            target="_blank"
            rel="noreferrer"
          >
            {form.url}
          </a>
          <Button kind="bare" icon="copy" iconOnly onClick={() => void copyText(form.url, 'Copied link')}>
            Copy link
          </Button>
          <Button kind="bare" why={why} onClick={() => setAsking(true)}>
            Replace
          </Button>
        </dd>
      </div>
      <Dialog
        title="Replace link"
        open={asking}
        onClose={() => setAsking(false)}
        foot={
          <>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
            <Button kind="danger" data-testid="replace-link" onClick={() => void replace()}>
              Replace link
            </Button>
          </>
        }
      >
        <p>The old link stops working at once. People who have it need the new one.</p>
      </Dialog>
    </dl>
  )
}
