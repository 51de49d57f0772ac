// Signing out: this browser, another one, or all of them. Shown to browsers that are signed in; a server without a token has no sessions.

import { useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import type { Me } from '../../api/schemas'
import { people } from '../../net/people'
import { Button } from '../../ui/Button'
import { messageOf } from '../../ui/words'
import { Refused } from './ListPage'
import { Sessions } from './Sessions'

export function Session({ me }: { me: Me | null }): ReactElement {
  const [error, setError] = useState<string | null>(null)
  const leave = (end: () => Promise<unknown>): void => {
    setError(null)
    end().then(
      () => location.replace('/'),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  const signOut = (): void => {
    setError(null)
    api.logout().then(
      (left) => location.replace(left.at_provider ?? '/'),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  return (
    <section aria-labelledby="set-session">
      <h2 id="set-session">Session</h2>
      <p className="quiet">
        {me === null ? null : `You are ${me.name}, ${me.role}. `}A session ends after 8 hours without use and after 7
        days. <code>weft link</code> prints a link that signs a browser in.
      </p>
      {me === null ? null : <Sessions all={me.role === 'admin'} />}
      <div className="settings__session settings__add">
        <Button onClick={signOut}>Sign out</Button>
        {me?.role === 'admin' ? (
          <Button changes onClick={() => leave(api.endSessions)}>
            Sign out all browsers
          </Button>
        ) : (
          <Button changes onClick={() => leave(people.endOwn)}>
            Sign out all my browsers
          </Button>
        )}
      </div>
      <Refused error={error} />
    </section>
  )
}
