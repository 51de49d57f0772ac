// Everything the command palette offers: what the canvas can do (with its key), blocks to go to, workflows, pages, themes.

import { canTurn, runCommand, type CanvasMode } from '../../canvas/commands'
import { goTo } from '../../canvas/walk'
import { sentenceText } from '../../canvas/sentence'
import { KEYS, keyText, type KeyId } from '../../keys'
import { navigate } from '../../ui/navigation'
import { docStore, specsOf } from '../../state/doc'
import { nameOf, readingOrder } from '../../document/document'
import { runStore } from '../../state/live'
import { uiStore, type Theme } from '../../state/ui'
import { iconOf, type IconName } from '../../ui/icons'
import { exportJson } from '../../actions/files'
import { openWorkflow } from '../../actions/open'

export interface CommandItem {
  id: string
  label: string
  group: string
  icon?: IconName
  detail?: string
  /** More words it is found by. */
  words?: string
  run: () => void
}

/** Keys that make no sense from a list: they need a direction, or are for the list itself. */
const NOT_LISTED = new Set<KeyId>(['back', 'move', 'moveFar', 'walk', 'commands', 'play'])
const EDITS = new Set(['Build', 'Move', 'Edit'])

/** `workflows`: names to open. */
export function commandsNow(workflows: readonly string[]): CommandItem[] {
  const { id } = docStore.getState()
  const running = runStore.getState().id !== null
  const mode: CanvasMode | null = id !== null ? 'edit' : running ? 'run' : null
  return [
    ...(mode ? doing(mode, running) : []),
    ...(mode ? blocks(mode) : []),
    ...workflows.map(opening),
    ...pages(),
    ...themes(),
  ]
}

function doing(mode: CanvasMode, running: boolean): CommandItem[] {
  const turns: Partial<Record<KeyId, boolean>> = {
    previousIteration: canTurn(mode, -1),
    nextIteration: canTurn(mode, 1),
  }
  const rows = KEYS.filter(
    (row) =>
      !NOT_LISTED.has(row.id) &&
      turns[row.id] !== false &&
      (mode === 'edit' || !EDITS.has(row.group)) &&
      (running || row.group !== 'Tape'),
  )
  const items = rows.map(
    (row): CommandItem => ({
      id: row.id,
      label: row.does,
      group: 'Commands',
      detail: keyText(row.id),
      run: () => void runCommand(row.id, mode),
    }),
  )
  if (mode === 'edit')
    items.push({
      id: 'diff',
      label: 'Compare versions',
      group: 'Commands',
      words: 'diff changes',
      run: () => uiStore.setState({ overlay: 'diff' }),
    })
  if (mode === 'edit')
    items.push({
      id: 'evaluate',
      label: 'Evaluate prompts and models',
      group: 'Commands',
      icon: 'evaluator',
      words: 'compare score budget test',
      run: () => uiStore.setState({ overlay: 'evaluate' }),
    })
  if (mode === 'edit')
    items.push({ id: 'export', label: 'Export as JSON', group: 'Commands', icon: 'download', run: () => exportJson() })
  return items
}

function blocks(mode: CanvasMode): CommandItem[] {
  const doc = mode === 'edit' ? docStore.getState().doc : runStore.getState().doc
  if (!doc) return []
  const specs = specsOf()
  return readingOrder(doc).map((id) => {
    const block = doc.blocks[id]!
    const spec = specs.get(block.type)
    return {
      id: `block ${id}`,
      label: nameOf(doc, id),
      group: 'Go to',
      icon: iconOf(block.type),
      detail: spec?.title ?? block.type,
      words: `${id} ${sentenceText(block, spec)}`,
      run: () => {
        goTo(doc, specs, id)
      },
    }
  })
}

function opening(name: string): CommandItem {
  return {
    id: `workflow ${name}`,
    label: name,
    group: 'Workflows',
    icon: 'run_workflow',
    run: () => void openWorkflow(name),
  }
}

function pages(): CommandItem[] {
  const to = (id: string, label: string): CommandItem => ({
    id: `page ${id}`,
    label,
    group: 'Pages',
    run: () => navigate(id),
  })
  return [
    to('/', 'Workflows'),
    to('/runs', 'Runs'),
    to('/approvals', 'Approvals'),
    to('/knowledge', 'Knowledge'),
    to('/usage', 'Usage'),
    to('/settings', 'Settings'),
  ]
}

function themes(): CommandItem[] {
  return (['system', 'light', 'dark'] as Theme[]).map((theme) => ({
    id: `theme ${theme}`,
    label: `Theme: ${theme === 'system' ? 'match system' : theme}`,
    group: 'Theme',
    icon: 'theme',
    run: () => uiStore.setState({ theme }),
  }))
}
