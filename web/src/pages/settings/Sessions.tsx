// Browsers that are signed in: your own, and for admins those of everyone. One can be ended.

import { useState, type ReactElement } from 'react'
import { people, type SessionOf } from '../../net/people'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'
import { deviceName } from './device'

export function Sessions({ all }: { all: boolean }): ReactElement {
  const sessions = useData(all ? people.sessions : people.ownSessions, [all])
  const [error, setError] = useState<string | null>(null)
  const end = (session: SessionOf): void => {
    setError(null)
    const ended = all ? people.endSession(session.id) : people.endOwnSession(session.id)
    ended.then(
      () => (session.current ? location.replace('/') : sessions.reload()),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  return (
    <>
      {error === null ? null : (
        <p className="notice" data-tone="err" role="alert">
          {error}
        </p>
      )}
      {sessions.value?.length ? (
        <div className="settings__env" role="table" aria-label="Sessions">
          <div role="row" className="settings__row label">
            {['Browser', 'User', 'Last used'].map((name) => (
              <span key={name} role="columnheader">
                {name}
              </span>
            ))}
          </div>
          {sessions.value.map((each) => (
            <div role="row" className="settings__row" key={each.id}>
              <span role="cell" title={each.device}>
                {deviceName(each.device)} {each.current ? <span className="quiet">this one</span> : null}
              </span>
              <span role="cell">
                <code>{each.user}</code>
              </span>
              <span role="cell" className="settings__session">
                <Ago at={each.seen_at_ms} />
                <Button changes onClick={() => end(each)}>
                  End
                </Button>
              </span>
            </div>
          ))}
        </div>
      ) : (
        <ListState data={sessions} empty>
          <EmptyState title="No browser is signed in" />
        </ListState>
      )}
    </>
  )
}
