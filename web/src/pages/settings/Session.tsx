// Signing out: this browser, or all of them. Shown to browsers that are signed in; a server without a token has no sessions.

import { useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import { Button } from '../../ui/Button'
import { messageOf } from '../../ui/words'

export function Session(): ReactElement {
  const [error, setError] = useState<string | null>(null)
  const leave = (end: () => Promise<unknown>): void => {
    setError(null)
    end().then(
      () => location.replace('/'),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  return (
    <section aria-labelledby="set-session">
      <h2 id="set-session">Session</h2>
      <p className="quiet">
        A session ends after 8 hours without use and after 7 days. <code>weft link</code> prints a link that signs a
        browser in.
      </p>
      <div className="settings__session">
        <Button onClick={() => leave(api.logout)}>Sign out</Button>
        <Button onClick={() => leave(api.endSessions)}>Sign out all browsers</Button>
      </div>
      {error === null ? null : (
        <p className="notice" data-tone="err" role="alert">
          {error}
        </p>
      )}
    </section>
  )
}
