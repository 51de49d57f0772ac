// Signing in and out. A request that is answered 401 says so here, whatever asked for it; the page then offers to sign in again.

type Heard = () => void

let heard: Heard = () => undefined

/** `fn` is called whenever the server answers 401. */
export function onSignedOut(fn: Heard): void {
  heard = fn
}

export function noteStatus(status: number, path: string): void {
  if (status === 401 && path !== '/login') heard()
}
