// The tries of a step, in words.

import type { StepState } from '../run'
import { dateTime } from '../ui/time'

/** How often it was tried, and when it is tried again: "3 tries, next at 14:05". */
export const triesText = ({ times, dueAt }: Pick<StepState, 'times' | 'dueAt'>): string =>
  [times > 1 ? `${times} tries` : dueAt === null ? '' : '1 try', dueAt === null ? '' : `next at ${dateTime(dueAt)}`]
    .filter(Boolean)
    .join(', ')
