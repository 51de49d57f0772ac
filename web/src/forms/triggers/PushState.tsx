// Whether a service reports events to this server, until when, and why not.

import type { ReactElement } from 'react'
import type { PushView } from '../../api/schemas'
import { Ago } from '../../ui/Ago'
import { sentence } from '../../ui/words'

export function PushState({ push }: { push: PushView }): ReactElement {
  return (
    <>
      {push.registered ? 'Registered at the service' : push.error ? 'Not registered' : 'Registering at the service'}
      {push.registered && push.expires_at_ms ? (
        <>
          , expires <Ago at={push.expires_at_ms} to />
        </>
      ) : null}
      {push.delivered_at_ms ? (
        <>
          , last call <Ago at={push.delivered_at_ms} />
        </>
      ) : null}
      .{push.error ? <span className="ref__wrong"> {sentence(push.error)}</span> : null}
    </>
  )
}
