// Who is signed in: asked once for all who want to know at the same time. What their role rules out is said before they try it;
// the server refuses it in any case.

import { createStore } from 'zustand/vanilla'
import type { Me } from '../api/schemas'
import { people, ROLES, type Role } from '../net/people'
import { READ_ONLY, serverStore } from './server'

export const meStore = createStore<{ me: Me | null }>(() => ({ me: null }))

let asking: Promise<void> | null = null

/** What was known stays when the server cannot be asked. */
export function loadMe(): Promise<void> {
  asking ??= people
    .me()
    .then(
      (me) => meStore.setState({ me }),
      () => undefined,
    )
    .finally(() => {
      asking = null
    })
  return asking
}

/** Why this person cannot change here what needs the role. Null if they can, and while that is not known. */
export function mayNot(needed: Role, me: Me | null = meStore.getState().me): string | null {
  if (serverStore.getState().readOnly) return READ_ONLY
  const ranks: readonly string[] = ROLES
  return me === null || ranks.indexOf(me.role) >= ranks.indexOf(needed)
    ? null
    : `Your role is ${me.role}. This needs the role ${needed}.`
}
