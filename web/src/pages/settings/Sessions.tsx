// Browsers that are signed in: your own, and for admins those of everyone. One can be ended.

import { useState, type ReactElement } from 'react'
import type { Session } from '../../api/schemas'
import { people } from '../../net/people'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'
import { deviceName } from './device'
import { Refused, Table } from './ListPage'

export function Sessions({ all }: { all: boolean }): ReactElement {
  const sessions = useData(all ? people.sessions : people.ownSessions, [all])
  const [error, setError] = useState<string | null>(null)
  const end = (session: Session): void => {
    setError(null)
    const ended = all ? people.endSession(session.id) : people.endOwnSession(session.id)
    ended.then(
      () => (session.current ? location.replace('/') : sessions.reload()),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  return (
    <>
      <Refused error={error} />
      {sessions.value?.length ? (
        <Table
          label="Sessions"
          rows={sessions.value}
          keyOf={({ id }) => id}
          columns={[
            {
              name: 'Browser',
              cell: ({ device, current }) => (
                <span title={device}>
                  {deviceName(device)} {current ? <span className="quiet">this one</span> : null}
                </span>
              ),
            },
            { name: 'User', cell: ({ user }) => <code>{user}</code> },
            {
              name: 'Last used',
              className: 'settings__session',
              cell: (session) => (
                <>
                  <Ago at={session.seen_at_ms} />
                  <Button changes onClick={() => end(session)}>
                    End
                  </Button>
                </>
              ),
            },
          ]}
        />
      ) : (
        <ListState data={sessions} empty>
          <EmptyState title="No browser is signed in" />
        </ListState>
      )}
    </>
  )
}
