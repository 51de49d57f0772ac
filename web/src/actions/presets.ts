// The first params of new blocks, so that they have their handles and can run at once. Other types start empty.

import type { JsonObject } from '../api/schemas'

const PRESETS: Readonly<Record<string, JsonObject>> = {
  condition: {
    cases: [
      { id: 'yes', title: 'Yes', when: 'true' },
      { id: 'else', title: 'Else' },
    ],
  },
  router: {
    value: '',
    routes: [
      { id: 'a', title: 'A' },
      { id: 'b', title: 'B' },
    ],
    default: 'other',
  },
  loop: { mode: 'for', count: 3 },
  parallel: { mode: 'count', count: 3 },
  function: { code: 'return {};' },
  http: { method: 'GET', url: '' },
  email: { to: '', subject: '' },
  approval: { title: 'Approve this step?', actions: ['approve', 'reject'] },
  wait: { seconds: 5 },
  signal: { name: 'go' },
  set: { value: '' },
}

export function presetOf(type: string): JsonObject {
  return structuredClone(PRESETS[type] ?? {})
}
