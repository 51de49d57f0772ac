// What the server, or the role of the person who is signed in, rules out, as the reason that a button shows.

import { useEffect } from 'react'
import { useStore } from 'zustand'
import type { Role } from '../net/people'
import { loadMe, mayNot, meStore } from '../state/me'
import { READ_ONLY, serverStore } from '../state/server'

/** Why this server changes nothing. Null: it does, or that is not known. */
export function useServerReadOnly(): string | null {
  return useStore(serverStore, (s) => (s.readOnly ? READ_ONLY : null))
}

/** Why this person cannot change here what needs the role. Null for those who can, and while that is not known. */
export function useMayNot(needed: Role): string | null {
  const me = useStore(meStore, (s) => s.me)
  useServerReadOnly()
  useEffect(() => void loadMe(), [])
  return mayNot(needed, me)
}

/** Why this person cannot store or run workflows. */
export const useReadOnly = (): string | null => useMayNot('editor')
