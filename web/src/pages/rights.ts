// What the role of the person who is signed in rules out, as the reason that a button shows.

import { people } from '../net/people'
import { useData } from '../ui/useData'

const CHANGE: readonly string[] = ['editor', 'admin']

/** Why this person cannot store or run workflows. Null for those who can, and while that is not known. */
export function useReadOnly(): string | null {
  const me = useData(people.me, []).value
  return me === null || CHANGE.includes(me.role) ? null : `Your role is ${me.role}. This needs the role editor.`
}
