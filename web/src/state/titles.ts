// What is shown in place of the names of workflows that were renamed. Names stay in addresses.

import { useEffect } from 'react'
import { useStore } from 'zustand'
import { createStore } from 'zustand/vanilla'
import { api } from '../net/api'

const titles = createStore<ReadonlyMap<string, string>>(() => new Map())
let asked: Promise<void> | null = null

/** Once for each load of the page; what could not be read is its name. */
export function loadTitles(again = false): Promise<void> {
  if (again) asked = null
  asked ??= api.workflows().then(
    (all) => titles.setState(new Map(all.flatMap((each) => (each.title ? [[each.name, each.title]] : []))), true),
    () => {
      asked = null
    },
  )
  return asked
}

/** The function from a name to what is shown for it. */
export function useTitles(): (name: string) => string {
  const known = useStore(titles)
  useEffect(() => void loadTitles(), [])
  return (name) => known.get(name) ?? name
}
