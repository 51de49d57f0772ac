// The menus of the canvas: for the selected blocks, for empty space, and what to wrap in. Their keys come from KEYS.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyText, type KeyId } from '../keys'
import { chooseFile, exportJson } from '../actions/files'
import { openPicker } from '../actions/picker'
import { handlesOf, indexOf } from '../document/document'
import { docStore, specsOf } from '../state/doc'
import { uiStore } from '../state/ui'
import type { IconName } from '../ui/icons'
import { Menu, type MenuEntry } from '../ui/Menu'
import { runCommand, type CanvasMode } from './commands'
import { wrap } from '../actions/arrange'
import { addNote } from '../actions/edit'
import { closeMenu, menuStore } from './menu'
import { toCanvas } from '../actions/view'

export function CanvasMenu({ mode }: { mode: CanvasMode }): ReactElement | null {
  const open = useStore(menuStore, (s) => s.open)
  if (!open) return null
  const at = toCanvas(open) ?? [0, 0]
  const item = (id: KeyId, label: string, icon?: IconName, why?: string | null): MenuEntry => ({
    label,
    keys: keyText(id),
    why,
    onSelect: () => void runCommand(id, mode),
    ...(icon ? { icon } : {}),
  })
  const wraps: MenuEntry[] = [
    { label: 'Wrap in a loop', icon: 'loop', onSelect: () => wrap('loop') },
    { label: 'Wrap in a parallel', icon: 'parallel', onSelect: () => wrap('parallel') },
  ]
  const entries = open.kind === 'wrap' ? wraps : open.kind === 'block' ? forBlocks() : forPane()
  return <Menu entries={entries} at={open} label={open.kind === 'pane' ? 'Canvas' : 'Blocks'} onClose={closeMenu} />

  function forBlocks(): MenuEntry[] {
    const { doc, readonly } = docStore.getState()
    const { blocks } = uiStore.getState().selection
    const one = blocks.length === 1 ? null : 'Select one block.'
    if (mode === 'run' || readonly)
      return [item('edit', 'Open details'), item('copy', 'Copy', 'copy'), item('fitSelection', 'Zoom to selection')]
    const off = blocks.some((id) => doc.blocks[id]?.enabled === false)
    return [
      item('edit', 'Edit', 'edit', one),
      item('rename', 'Rename', undefined, one),
      item('connect', 'Connect', 'link', one),
      ...cleanups(),
      'line',
      item('copy', 'Copy', 'copy'),
      item('duplicate', 'Duplicate'),
      item('disable', off ? 'Enable' : 'Disable'),
      ...wraps,
      'line',
      item('selectUpstream', 'Select upstream', undefined, one),
      item('selectDownstream', 'Select downstream', undefined, one),
      item('tidy', blocks.length > 1 ? 'Tidy selection' : 'Tidy'),
      'line',
      item('delete', 'Delete', 'trash'),
    ]
  }

  /** A container and a trigger can have steps that run at the end, however it ends. */
  function cleanups(): MenuEntry[] {
    const { doc } = docStore.getState()
    const [id, ...more] = uiStore.getState().selection.blocks
    const block = id === undefined || more.length ? undefined : doc.blocks[id]
    if (!block || !handlesOf(block, specsOf()).includes('finally')) return []
    if (
      indexOf(doc)
        .outOf.get(id!)
        ?.some((edge) => edge.handle === 'finally')
    )
      return []
    const from = { source: id!, handle: 'finally' }
    return [{ label: 'Add a cleanup step', onSelect: () => openPicker({ mode: 'add', screen: open!, from }) }]
  }

  function forPane(): MenuEntry[] {
    const view = [item('fit', 'Fit all'), item('zoom100', 'Zoom to 100 %'), item('minimap', 'Minimap')]
    if (mode === 'run' || docStore.getState().readonly) return view
    return [
      {
        label: 'Add a block here',
        icon: 'plus',
        keys: keyText('add'),
        onSelect: () => openPicker({ mode: 'add', screen: open!, at }),
      },
      { label: 'Add a note', icon: 'note', keys: keyText('note'), onSelect: () => void addNote(at) },
      item('paste', 'Paste'),
      item('selectAll', 'Select all'),
      item('tidy', 'Tidy'),
      'line',
      ...view,
      'line',
      { label: 'Import file', onSelect: chooseFile },
      { label: 'Export as JSON', icon: 'download', onSelect: () => exportJson() },
    ]
  }
}
