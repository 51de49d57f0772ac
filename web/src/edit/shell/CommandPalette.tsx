// All commands, blocks, workflows and pages in one list (mod+K), found by a few letters.

import { useMemo, useState, type ReactElement } from 'react'
import { api } from '../../net/api'
import { uiStore } from '../../state/ui'
import { useData } from '../../ui/useData'
import { fuzzy, Listbox, type ListOption } from '../../ui/Listbox'
import { commandsNow, type CommandItem } from './commands'
import { Overlay } from './Overlay'

const SHOWN_MAX = 60
const NONE: readonly string[] = []

export default function CommandPalette(): ReactElement {
  const [query, setQuery] = useState('')
  const stored = useData(() => api.workflows(), [])
  const names = stored.value?.map((each) => each.name) ?? NONE
  const all = useMemo(() => commandsNow(names), [names])
  const found = useMemo(() => matching(all, query), [all, query])
  const close = (): void => uiStore.setState({ overlay: null })
  const options = found.map(
    (item): ListOption => ({
      id: item.id,
      label: item.label,
      ...(query ? {} : { group: item.group }),
      ...(item.detail ? { detail: item.detail } : {}),
      ...(item.icon ? { icon: item.icon } : {}),
    }),
  )
  return (
    <Overlay label="Commands" onClose={close}>
      <Listbox
        label="Commands and blocks"
        placeholder="Find or do anything"
        options={options}
        query={query}
        onQuery={setQuery}
        autoFocus
        empty="No results"
        onCancel={close}
        onChoose={(option) => {
          close()
          // The command finds the page as it was before the palette opened.
          setTimeout(() => found.find((item) => item.id === option.id)?.run())
        }}
      />
    </Overlay>
  )
}

function matching(all: readonly CommandItem[], query: string): CommandItem[] {
  if (!query.trim()) return all.slice(0, SHOWN_MAX)
  const score = (item: CommandItem): number =>
    Math.max(fuzzy(item.label, query), item.words && fuzzy(item.words, query) > 650 ? 300 : 0)
  return all
    .map((item) => ({ item, score: score(item) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, SHOWN_MAX)
    .map((each) => each.item)
}
