// A run of a draft as a command for a shell.

import type { Json } from '../../api/schemas'

/** For POSIX shells. */
export function asCurl(origin: string, draft: string, input: Json, trigger: string | null): string {
  const body = JSON.stringify({ input, ...(trigger === null ? {} : { trigger }) })
  return [
    `curl -X POST ${quoted(`${origin}/api/drafts/${encodeURIComponent(draft)}/run`)}`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quoted(body)}`,
  ].join(' \\\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
