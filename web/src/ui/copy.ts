// To the clipboard. Browsers give pages none that come without TLS, but for those of this computer.

import { toast } from './Toast'

const SHOWN_MAX = 200

/** Copy `text` and say `done`; where that is not allowed, show the text so that it can be copied by hand. */
export async function copyText(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toast(done, 'ok')
  } catch {
    toast(text.length <= SHOWN_MAX ? text : 'Pages without HTTPS cannot copy. Select the text and copy it.')
  }
}
