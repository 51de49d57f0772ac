// Whether this canvas shows the document that is edited, or a run's.

import { createContext, useContext } from 'react'
import type { CanvasMode } from './commands'

export const ModeContext = createContext<CanvasMode>('edit')
export const useMode = (): CanvasMode => useContext(ModeContext)
