// What is about the person and not about the document or the run: selection, panels, theme. Sizes and theme are remembered.

import { createStore } from 'zustand/vanilla'

export type Theme = 'system' | 'light' | 'dark'
export type View = 'canvas' | 'json' | 'outline'
export type Drawer = 'tape' | 'trace' | 'events' | 'problems' | null
export type InspectorTab = 'config' | 'input' | 'output' | 'events'

export interface Selection {
  blocks: readonly string[]
  edges: readonly string[]
  notes: readonly string[]
}

export interface Panels {
  /** Widths in pixels; collapsed panels keep theirs. */
  palette: number
  paletteOpen: boolean
  inspector: number
  json: number
  drawer: number
}

export interface UiState {
  selection: Selection
  /** Iteration or branch that is looked at, by container id; containers not in it show their latest. */
  iter: Readonly<Record<string, number>>
  panels: Panels
  theme: Theme
  view: View
  drawer: Drawer
  tab: InspectorTab
  /** The same, of a run that is looked at: there the result comes first. */
  runTab: InspectorTab
  /** Which overlay is open. */
  /** The block whose sheet lies over the canvas. */
  sheet: string | null
  overlay: 'palette' | 'shortcuts' | 'run' | 'find' | 'evaluate' | 'version' | 'diff' | 'tests' | null
  minimap: boolean
  /** The panel that tries the draft is open. */
  playground: boolean
  /** The list of what is left before the draft runs is open. */
  setup: boolean
  /** The step of the selected block that the inspector shows. */
  step: number | null
}

const KEY = 'weft-ui'
export const NOTHING: Selection = { blocks: [], edges: [], notes: [] }

export const uiStore = createStore<UiState>(() => ({
  selection: NOTHING,
  iter: {},
  view: 'canvas',
  tab: 'config',
  runTab: 'output',
  overlay: null,
  step: null,
  sheet: null,
  playground: false,
  setup: false,
  theme: 'system',
  drawer: 'tape',
  minimap: false,
  panels: { palette: 208, paletteOpen: false, inspector: 328, json: 480, drawer: 112 },
  ...remembered(),
}))

uiStore.subscribe(() => {
  const { panels, theme, drawer, minimap, playground } = uiStore.getState()
  const text = JSON.stringify({ panels, theme, drawer, minimap, playground })
  try {
    if (localStorage.getItem(KEY) !== text) localStorage.setItem(KEY, text)
  } catch {
    // Storage may be off; then nothing is remembered.
  }
})

export function select(change: Partial<Selection>): void {
  uiStore.setState({ selection: { ...NOTHING, ...change }, step: null })
}

/** Show a durable step of the block that is selected, with what it was asked and what came back. */
export function showStep(n: number): void {
  uiStore.setState({ step: n, tab: 'output', runTab: 'output' })
}

/** Open the sheet of a block, or change to that of another one. */
export function openSheet(id: string): void {
  uiStore.setState({ selection: { ...NOTHING, blocks: [id] }, sheet: id, step: null })
}

export function setPanels(change: Partial<Panels>): void {
  uiStore.setState(({ panels }) => ({ panels: { ...panels, ...change } }))
}

/** Look at an iteration or branch of a container; null: at its latest. */
export function setIter(container: string, index: number | null): void {
  uiStore.setState(({ iter }) => {
    const { [container]: _, ...rest } = iter
    return { iter: index === null ? rest : { ...rest, [container]: index } }
  })
}

/** Put the theme on the page, now and whenever it changes. */
export function applyTheme(root: HTMLElement): void {
  const put = (): void => {
    const { theme } = uiStore.getState()
    if (theme === 'system') delete root.dataset.theme
    else root.dataset.theme = theme
  }
  put()
  uiStore.subscribe(put)
}

function remembered(): Partial<UiState> {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<UiState>
    return stored && typeof stored === 'object' ? stored : {}
  } catch {
    return {}
  }
}
