// The whole set of glyphs: 16 x 16, one stroke width, drawn in the text colour. Never Unicode symbols: not every machine has them.

import type { ReactElement } from 'react'

const PATHS = {
  // block kinds
  start: 'M5 3.5v9l7-4.5z',
  webhook: 'M9 2.5 4.5 9H8l-1 4.5L11.5 7H8z',
  form_trigger: 'M6 5V2.5h7.5v11H6V11M9.5 5.5h2M9.5 8h2M9.5 10.5h2M2 8h5.5M5 5.5 7.5 8 5 10.5',
  chat_trigger: 'M3.5 3h9v6.5H8L5 12.5v-3H3.5zM6 5.5h4M6 7.5h2.5',
  schedule: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3l2 1.5',
  function: 'M10.5 3H9.6A1.6 1.6 0 0 0 8 4.4L7 11.6A1.6 1.6 0 0 1 5.4 13h-.9M5.5 6.5h4.5',
  python: 'M3.5 4.5 7 8l-3.5 3.5M8.5 11.5h4.5',
  http: 'M2.5 5.5h10L10 3M13.5 10.5h-10L6 13',
  knowledge: 'M3 3h3.5L8 4.2 9.5 3H13v9.5H9.5L8 13.7l-1.5-1.2H3zM8 4.2v9.5M4.8 6h1.7M4.8 8.5h1.7M9.6 6h1.7M9.6 8.5h1.7',
  sql: 'M3 4.2c0-1 2.2-1.7 5-1.7s5 .7 5 1.7-2.2 1.7-5 1.7-5-.7-5-1.7M3 4.2v7.6c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4.2M3 8c0 1 2.2 1.7 5 1.7s5-.7 5-1.7',
  file: 'M4 2.5h5L12.5 6v7.5H4zM9 2.5V6h3.5',
  email: 'M2.5 4h11v8h-11zM2.5 4.5 8 9l5.5-4.5',
  set: 'M3 5.5h10M3 10.5h10',
  variables: 'M5.5 3C3 6 3 10 5.5 13M10.5 3c2.5 3 2.5 7 0 10M6.5 6l3 4M9.5 6l-3 4',
  condition: 'M8 2.5 13.5 8 8 13.5 2.5 8z',
  router: 'M2.5 8H6l3-4.5h4M6 8h7.5M6 8l3 4.5h4',
  loop: 'M12.8 6.5A5 5 0 0 0 4 5L2.5 6.5M2.5 3.5v3h3M3.2 9.5A5 5 0 0 0 12 11l1.5-1.5M13.5 12.5v-3h-3',
  parallel: 'M3 4.5h10M3 8h10M3 11.5h10',
  break: 'M2.5 8h8M8 5l3 3-3 3M13 3.5v9',
  wait: 'M4.5 2.5h7M4.5 13.5h7M5.5 2.5c0 3 5 4 5 5.5s-5 2.5-5 5.5M10.5 2.5c0 3-5 4-5 5.5s5 2.5 5 5.5',
  signal:
    'M8 9.2a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4M4.8 11.2a4.5 4.5 0 0 1 0-6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.8 13.2a7.4 7.4 0 0 1 0-10.4M13.2 2.8a7.4 7.4 0 0 1 0 10.4',
  approval: 'M3 3h10v10H3zM5.5 8l2 2 3.5-4',
  form: 'M3 2.5h10v11H3zM5.5 5.5h5M5.5 8h5M5.5 10.5h2.5',
  callback: 'M13 4H7a3.5 3.5 0 0 0 0 7h4.5M9 8.5l2.5 2.5L9 13.5',
  job: 'M8 2.5 13 5.2v5.6l-5 2.7-5-2.7V5.2zM3 5.2l5 2.8 5-2.8M8 8v5.5',
  run_workflow: 'M2.5 3h11v10h-11zM6.5 6v4L10 8z',
  response: 'M13 3.5v4a2 2 0 0 1-2 2H3M6 6.5l-3 3 3 3',
  continue_as_new: 'M3 3v10M6 8h7.5M10.5 5l3 3-3 3',
  note: 'M3 3h10v6.5L9.5 13H3zM13 9.5H9.5V13',
  agent: 'M8 2.5 9.5 6.5l4 1.5-4 1.5L8 13.5 6.5 9.5l-4-1.5 4-1.5z',
  model_router: 'M2.5 8H6l3-4.5h4.5M6 8l3 4.5h4.5M11.5 5.8l.6 1.6 1.6.6-1.6.6-.6 1.6-.6-1.6-1.6-.6 1.6-.6z',
  evaluator: 'M2.5 13.5h11M4.5 11V8.5M8 11V3M11.5 11V5.5',
  guardrail: 'M8 2.5 13 4.3v3.9c0 2.6-2 4.4-5 5.3-3-.9-5-2.7-5-5.3V4.3zM5.8 8l1.6 1.6L10.4 6.6',
  block: 'M3 4.5h10v7H3z',
  // services of connectors: signs of what they are for, not their marks
  slack: 'M6 2.5 5 13.5M11 2.5l-1 11M2.5 6h11M2.5 10.5h11',
  github:
    'M5 5.5v5M5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M5 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M11 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M11 5.5c0 3-6 2-6 5',
  gmail: 'M2.5 12V4L8 9l5.5-5v8M2.5 12h2.5M11 12h2.5',
  google_sheets: 'M3 2.5h10v11H3zM3 6h10M3 9.5h10M6.5 6v7.5',
  notion: 'M3 3h10v10H3zM6 10.5v-5l4 5v-5',
  linear: 'M3 9.5 6.5 13M3 6l7 7M5 4l7 7M8 3l5 5',
  discord: 'M3 4.5c3-1.5 7-1.5 10 0l1 7c-1.5 1-2.5 1.5-3.5 1.5L9.5 12h-3l-1 1c-1 0-2-.5-3.5-1.5zM6 8.5h.01M10 8.5h.01',
  s3: 'M3 4.5c0-2.5 10-2.5 10 0s-10 2.5-10 0M3 4.5l1 8c.5 1.5 7.5 1.5 8 0l1-8',
  calendar: 'M3 4h10v9.5H3zM3 7h10M6 2.5V5M10 2.5V5M6 10h.01M10 10h.01',
  people: 'M6 7.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4M2.5 13c0-4.5 7-4.5 7 0M10.5 4a2 2 0 0 1 0 3.5M11.5 9.5c1.3.5 2 1.7 2 3.5',
  card: 'M2.5 4h11v8h-11zM2.5 6.5h11M5 9.5h2.5',
  board: 'M3 3h10v10H3zM6.3 3v7M9.7 3v10',
  phone: 'M5 2.5h6v11H5zM7.5 11.5h1',
  alarm: 'M8 3.5a3.5 3.5 0 0 0-3.5 3.5v3L3 12h10l-1.5-2V7A3.5 3.5 0 0 0 8 3.5M8 2v1.5M7 12.5c0 1.3 2 1.3 2 0',
  cart: 'M2.5 3H4l1.5 7h6.5l1.5-5H4.5M6.5 13h.01M11 13h.01',
  sun: 'M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M8 2v1.5M8 12.5V14M2 8h1.5M12.5 8H14M4 4l1 1M11 11l1 1M12 4l-1 1M5 11l-1 1',
  telegram: 'M2.5 8 13.5 3l-2 10-4-3zM7.5 10l-.5 3.5M7.5 10l6-7',
  // states
  queued: 'M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9',
  running: 'M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M8 3.5v9a4.5 4.5 0 0 1 0-9z',
  succeeded: 'M3.5 8.5l3 3 6-7',
  failed: 'M5.9 3h4.2L13 5.9v4.2L10.1 13H5.9L3 10.1V5.9zM6.2 6.2l3.6 3.6M9.8 6.2 6.2 9.8',
  waiting: 'M6 4v8M10 4v8',
  breakpoint: 'M3.5 3.5h9v9h-9zM8 9.3a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6',
  skipped: 'M3 11.5c0-4 2.5-6 8-6M9 3l3 2.5L9 8',
  cancelled: 'M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M5 11l6-6',
  restored: 'M3.5 7.5l3 3 6-7M3 13.5h2M7 13.5h2M11 13.5h2',
  // actions
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  compare: 'M2.5 8H5c3 0 3-4 6-4h2.5M5 8c3 0 3 4 6 4h2.5',
  eye: 'M1.8 8c1.5-2.7 3.6-4 6.2-4s4.7 1.3 6.2 4c-1.5 2.7-3.6 4-6.2 4s-4.7-1.3-6.2-4M8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4',
  search: 'M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8M10 10l3 3',
  chevron: 'M6 4l4 4-4 4',
  back: 'M10 4 6 8l4 4',
  down: 'M4 6l4 4 4-4',
  play: 'M5 3.5v9l7-4.5z',
  pause: 'M6 4v8M10 4v8',
  stop: 'M4.5 4.5h7v7h-7z',
  first: 'M4 4v8M12 4 7 8l5 4z',
  last: 'M12 4v8M4 4l5 4-5 4z',
  undo: 'M3 6h6.5a3.5 3.5 0 0 1 0 7H6M3 6l3-3M3 6l3 3',
  redo: 'M13 6H6.5a3.5 3.5 0 0 0 0 7H10M13 6l-3-3M13 6l-3 3',
  copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7',
  trash: 'M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.7 8.5h5.6l.7-8.5',
  download: 'M8 3v7M5 7.5l3 3 3-3M3 13h10',
  upload: 'M8 10V3M5 5.5 8 2.5l3 3M3 13h10',
  edit: 'M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7 11.3 7',
  expand: 'M9.5 3.5h3v3M12.5 3.5 9 7M6.5 12.5h-3v-3M3.5 12.5 7 9',
  more: 'M4 8h.01M8 8h.01M12 8h.01',
  settings: 'M3 5h5M11 5h2M3 11h2M8 11h5M9.5 3.5v3M6.5 9.5v3',
  help: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M6.3 6.3a1.8 1.8 0 1 1 2.4 1.9c-.5.2-.7.5-.7 1M8 11.2h.01',
  link: 'M7 5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 9M9 11l-1.5 1.5a2.8 2.8 0 0 1-4-4L5 7M6 10l4-4',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  warning: 'M8 3 14 13H2zM8 6.5v3M8 11.3h.01',
  pin: 'M6 3h4l-.5 4 2 2h-7l2-2zM8 9v4.5',
} as const

export type IconName = keyof typeof PATHS

const FILLED = new Set<IconName>(['start', 'play', 'running', 'first', 'last', 'theme'])
/** Of glyphs that are half filled, which part. */
const FILL_PART: Partial<Record<IconName, string>> = {
  running: 'M8 3.5v9a4.5 4.5 0 0 1 0-9z',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11z',
}

/** A glyph for a painter: its outline, and what of it is filled. */
export function glyph(name: IconName): { d: string; fill: string } {
  return { d: PATHS[name], fill: FILL_PART[name] ?? (FILLED.has(name) ? PATHS[name] : '') }
}

/** With a `label` it speaks; without one it is decoration beside a word. */
export function Icon({ name, size = 16, label }: { name: IconName; size?: number; label?: string }): ReactElement {
  const part = FILL_PART[name]
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      role={label ? 'img' : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : true}
    >
      <path d={PATHS[name]} fill={FILLED.has(name) && !part ? 'currentColor' : 'none'} />
      {part ? <path d={part} fill="currentColor" stroke="none" /> : null}
    </svg>
  )
}

/** What block types of other packages may ask for (`icon` of their spec), beside the names above. */
const ALIASES: Record<string, IconName> = {
  branch: 'condition',
  clock: 'wait',
  code: 'function',
  equal: 'set',
  exit: 'break',
  globe: 'http',
  mail: 'email',
  person: 'approval',
  repeat: 'loop',
  reply: 'response',
  route: 'router',
  variable: 'variables',
  play: 'start',
}

/** The glyph of a block type; `asked` is the spec's `icon`. */
export function iconOf(type: string, asked = ''): IconName {
  const service = type.startsWith('connector.') ? type.slice('connector.'.length) : null
  if ((service ?? type) in PATHS) return (service ?? type) as IconName
  return ALIASES[asked] ?? (asked in PATHS ? (asked as IconName) : service === null ? 'block' : 'http')
}
