// A sign-in at a provider that begins beside a field: in a window of its own, which comes back to Settings (the address that is
// registered at the provider) and ends there; or, where the browser opens no window, in this one, which then returns to the block.

import { connections } from '../../net/connections'

const KEY = 'weft.sign-in' // who began the last one: where to return to
const CHANNEL = 'weft-sign-in'
const ANSWER_MS = 700 // a page that waits for the end answers at once
const VALID_MS = 10 * 60_000

interface Begun {
  name: string
  from: string
  at: number
}
interface Ended {
  name: string
  error: string
}

/** The window has to be opened by the click itself, before anything is awaited. */
export function openWindow(): Window | null {
  return window.open('about:blank', '_blank', 'popup,width=560,height=720')
}

/** Continues at the provider; resolves when the sign-in has ended in the other window, with the reason if it failed. */
export async function signIn(
  name: string,
  other: Window | null,
  signal: AbortSignal,
  block: string | null,
): Promise<string> {
  const begun = await connections.connect(name).catch((error: unknown) => {
    other?.close()
    throw error
  })
  const from = location.pathname + (block === null ? location.search : `?block=${encodeURIComponent(block)}`)
  localStorage.setItem(KEY, JSON.stringify({ name, from, at: Date.now() } satisfies Begun))
  if (!other) {
    location.assign(begun.url)
    return new Promise(() => undefined)
  }
  const channel = new BroadcastChannel(CHANNEL)
  const ended = new Promise<string>((resolve) => {
    channel.onmessage = (event: MessageEvent<Ended>) => {
      if (event.data.name !== name || event.data.error === undefined) return
      channel.postMessage({ name, taken: true })
      resolve(event.data.error)
    }
    signal.addEventListener('abort', () => resolve('The sign-in was left.'))
  })
  other.location.href = begun.url
  return ended.finally(() => channel.close())
}

/** Called where the provider sent the browser: it informs the page that waits. Returns whether to close, or where to go. */
export function endSignIn(name: string, error: string): Promise<'close' | { to: string } | null> {
  const begun = read()
  if (begun?.name !== name) return Promise.resolve(null)
  localStorage.removeItem(KEY)
  const channel = new BroadcastChannel(CHANNEL)
  return new Promise<'close' | { to: string }>((resolve) => {
    const late = setTimeout(() => resolve({ to: begun.from }), ANSWER_MS)
    channel.onmessage = (event: MessageEvent<{ name: string; taken?: boolean }>) => {
      if (event.data.name !== name || !event.data.taken) return
      clearTimeout(late)
      resolve('close')
    }
    channel.postMessage({ name, error } satisfies Ended)
  }).finally(() => channel.close())
}

function read(): Begun | null {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? 'null') as Begun | null
    return found && Date.now() - found.at < VALID_MS && found.from.startsWith('/') ? found : null
  } catch {
    return null
  }
}
