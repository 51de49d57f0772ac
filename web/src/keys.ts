// The one table of shortcuts: handlers, menus, tooltips and the sheet behind `?` all read it. `mod` is cmd on a Mac, else ctrl.
// Where: `canvas` keys count only while the canvas has focus and no text is typed; `app` keys everywhere on the editor; `tape`
// keys while the Tape has focus.

export type Where = 'app' | 'canvas' | 'tape'

export interface KeyRow {
  id: string
  /** Each is one way: "mod+shift+Z". Letters are the letters on the key, symbols what is typed. */
  keys: readonly string[]
  does: string
  where: Where
  group: 'Build' | 'Move' | 'Edit' | 'Run' | 'Tape' | 'View'
}

const row = <I extends string>(id: I, keys: string, does: string, group: KeyRow['group'], where: Where = 'canvas') => ({
  id,
  keys: keys.split(' '),
  does,
  group,
  where,
})

export const KEYS = [
  row('add', '/ N', 'Add a block here', 'Build'),
  row('connect', 'C', 'Connect to another block', 'Build'),
  row('edit', 'Enter', 'Edit the block', 'Build'),
  row('back', 'Escape', 'Back to the canvas', 'Build', 'app'),
  row('rename', 'F2', 'Rename', 'Build'),
  row('wrap', 'G', 'Wrap in a loop or parallel', 'Build'),
  row('note', 'shift+S', 'Add a note', 'Build'),
  row('disable', 'D', 'Disable or enable', 'Build'),
  row('move', 'ArrowLeft ArrowRight ArrowUp ArrowDown', 'Move by 16 px', 'Move'),
  row('moveFar', 'shift+ArrowLeft shift+ArrowRight shift+ArrowUp shift+ArrowDown', 'Move by 64 px', 'Move'),
  row('walk', 'alt+ArrowLeft alt+ArrowRight alt+ArrowUp alt+ArrowDown', 'Follow connections', 'Move'),
  row('selectUpstream', 'shift+alt+ArrowLeft', 'Select upstream blocks', 'Move'),
  row('selectDownstream', 'shift+alt+ArrowRight', 'Select downstream blocks', 'Move'),
  row('tidy', 'shift+T', 'Tidy the selection or everything', 'Move'),
  row('undo', 'mod+Z', 'Undo', 'Edit', 'app'),
  row('redo', 'mod+shift+Z mod+Y', 'Redo', 'Edit', 'app'),
  row('copy', 'mod+C', 'Copy', 'Edit'),
  row('cut', 'mod+X', 'Cut', 'Edit'),
  row('paste', 'mod+V', 'Paste', 'Edit'),
  row('duplicate', 'mod+D', 'Duplicate', 'Edit'),
  row('selectAll', 'mod+A', 'Select all', 'Edit'),
  row('delete', 'Delete Backspace', 'Delete', 'Edit'),
  row('save', 'mod+S', 'Publish version', 'Edit', 'app'),
  row('find', 'mod+F', 'Find and replace', 'Edit', 'app'),
  row('run', 'mod+Enter', 'Run', 'Run', 'app'),
  row('runAgain', 'mod+shift+Enter', 'Run with the last input', 'Run', 'app'),
  row('cancel', 'mod+.', 'Cancel the run', 'Run', 'app'),
  row('rerun', 'R', 'Run again from this block', 'Run'),
  row('firstError', 'E', 'Jump to the first error', 'Run'),
  row('previousIteration', '[', 'Previous iteration', 'Run'),
  row('nextIteration', ']', 'Next iteration', 'Run'),
  row('previousEvent', ',', 'Previous event', 'Tape'),
  row('nextEvent', '.', 'Next event', 'Tape'),
  row('previousBlock', 'shift+, <', 'Previous block boundary', 'Tape'),
  row('nextBlock', 'shift+. >', 'Next block boundary', 'Tape'),
  row('tapeStart', 'Home', 'First event', 'Tape'),
  row('live', 'End', 'Latest event', 'Tape'),
  row('play', 'Space', 'Play or pause', 'Tape', 'tape'),
  row('commands', 'mod+K', 'All commands', 'View', 'app'),
  row('json', 'J', 'JSON', 'View'),
  row('outline', 'O', 'Outline', 'View'),
  row('trace', 'L', 'Trace', 'View'),
  row('zoom100', '0', 'Zoom to 100 %', 'View'),
  row('fit', '1', 'Fit all', 'View'),
  row('fitSelection', 'shift+1 !', 'Zoom to selection', 'View'),
  row('zoomIn', '+ =', 'Zoom in', 'View'),
  row('zoomOut', '-', 'Zoom out', 'View'),
  row('minimap', 'M', 'Minimap', 'View'),
  row('shortcuts', '?', 'Shortcuts', 'View', 'app'),
] as const

export type KeyId = (typeof KEYS)[number]['id']

type KeyLike = Pick<KeyboardEvent, 'key' | 'code' | 'shiftKey' | 'altKey' | 'ctrlKey' | 'metaKey'>

export const isMac = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform)

/** The row a key press means in one of these places, or null. Text fields keep their keys, but for those with `mod` and Escape. */
export function keyOfEvent(event: KeyLike & { target?: EventTarget | null }, places: readonly Where[]): KeyId | null {
  const typing = isTextField(event.target ?? null)
  for (const each of KEYS) {
    if (!places.includes(each.where)) continue
    for (const keys of each.keys) {
      if (typing && !(each.where === 'app' && (keys.startsWith('mod+') || keys === 'Escape'))) continue
      if (matchesKeys(event, keys)) return each.id
    }
  }
  return null
}

/** Does an event match "mod+shift+Z"? Symbols match what is typed, whatever shift that takes. */
export function matchesKeys(event: KeyLike, keys: string): boolean {
  const parts = keys === '+' ? ['+'] : keys.split('+')
  const key = parts.at(-1)!
  const has = (name: string): boolean => parts.slice(0, -1).includes(name)
  const mod = isMac ? event.metaKey : event.ctrlKey
  const other = isMac ? event.ctrlKey : event.metaKey
  if (mod !== has('mod') || other || event.altKey !== has('alt')) return false
  const pressed = event.key === ' ' ? 'Space' : event.key
  const named = key.length > 1
  const letter = /^[A-Z]$/.test(key)
  const digit = /^\d$/.test(key)
  if (named || letter) return event.shiftKey === has('shift') && pressed.toLowerCase() === key.toLowerCase()
  if (digit) return event.shiftKey === has('shift') && (pressed === key || event.code === `Digit${key}`)
  return has('shift') ? event.shiftKey && event.code === CODES[key] : pressed === key
}

/** How a shortcut is written for this machine: "⌘⇧Z" would need a font, so words: "Ctrl+Shift+Z". */
export function keyText(id: KeyId): string {
  return wordsOf(KEYS.find((each) => each.id === id)!.keys[0]!)
}

/** "mod+shift+Z" as it is shown on this machine. */
export function wordsOf(keys: string): string {
  return keys
    .split(/\+(?=.)/)
    .map((part) => WORDS[part] ?? part)
    .join('+')
}

export function isTextField(target: EventTarget | null): boolean {
  if (typeof HTMLElement === 'undefined' || !(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.shadowRoot) return true
  return target.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=button], [type=range])')
}

const CODES: Record<string, string> = { ',': 'Comma', '.': 'Period', '/': 'Slash' }
const WORDS: Record<string, string> = {
  mod: isMac ? 'Cmd' : 'Ctrl',
  shift: 'Shift',
  alt: isMac ? 'Option' : 'Alt',
  ArrowLeft: 'Left',
  ArrowRight: 'Right',
  ArrowUp: 'Up',
  ArrowDown: 'Down',
  Escape: 'Esc',
}
