// From which block the shown run shall run again; null while nobody asks.

import { createStore } from '../../state/store'

export const rerunStore = createStore<{ from: string | null }>({ from: null })
