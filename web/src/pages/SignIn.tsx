// Over every page when the server answers 401: the session has ended while the page was open. The page below stays unchanged, and
// an unsaved draft is saved before the page is loaded again.

import { useEffect, useRef, useState, type FormEvent, type ReactElement } from 'react'
import { api } from '../net/api'
import { onSignedOut } from '../net/session'
import { flush } from '../state/doc'
import { Button } from '../ui/Button'
import { messageOf } from '../ui/words'
import './signin.css'

export function SignIn(): ReactElement | null {
  const [open, setOpen] = useState(false)
  useEffect(() => onSignedOut(() => setOpen(true)), [])
  return open ? <Form /> : null
}

function Form(): ReactElement {
  const ref = useRef<HTMLDialogElement>(null)
  const [token, setToken] = useState('')
  const [error, setError] = useState<string | null>(null)
  useEffect(() => {
    if (!ref.current?.open) ref.current?.showModal()
  }, [])
  useEffect(() => {
    // Signed in by a link, in another tab of this browser.
    const look = (): void => {
      if (!document.hidden) api.server().then(goOn, () => undefined)
    }
    addEventListener('focus', look)
    document.addEventListener('visibilitychange', look)
    return () => {
      removeEventListener('focus', look)
      document.removeEventListener('visibilitychange', look)
    }
  }, [])
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    setError(null)
    api.login(token.trim()).then(goOn, (refused: unknown) => setError(messageOf(refused)))
  }
  return (
    <dialog
      ref={ref}
      className="dialog signin"
      aria-labelledby="signin-title"
      data-testid="sign-in"
      onCancel={(event) => event.preventDefault()}
    >
      <form onSubmit={submit}>
        <h2 id="signin-title">You are signed out</h2>
        <p>
          Paste the token (<code>weft token</code> prints it), or open the link that <code>weft link</code> prints and
          come back to this page.
        </p>
        <label className="signin__token">
          Token
          <input
            type="password"
            autoComplete="current-password"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {error === null ? null : (
          <p className="signin__error" role="alert">
            {error}
          </p>
        )}
        <Button kind="primary" type="submit">
          Sign in
        </Button>
      </form>
    </dialog>
  )
}

async function goOn(): Promise<void> {
  await flush().catch(() => undefined) // what cannot be saved is stored in this browser and offered again
  location.reload()
}
