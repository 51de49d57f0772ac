// Improves the page of a resume link or a public form where JavaScript runs: local times, fields checked during typing, no double answers, and
// a message when another answer came first or the connection is lost. The page works without it.

import './ui/fonts'

const POLL_MS = 5000

const form = document.querySelector<HTMLFormElement>('main form[method=post]')
const main = document.querySelector('main')

for (const time of document.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
  time.title = time.textContent ?? ''
  time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
}
if (form && main) enhance(form, main)

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

function enhance(form: HTMLFormElement, main: Element): void {
  const notice = document.createElement('p')
  notice.className = 'notice'
  notice.setAttribute('role', 'status')
  notice.hidden = true
  form.before(notice)
  const say = (text: string, isError: boolean): void => {
    if (notice.textContent !== text) notice.textContent = text
    notice.classList.toggle('err', isError)
    notice.hidden = !text
  }

  // Our messages stand at the fields and are read out; the browser's bubbles do neither everywhere.
  form.noValidate = true
  const controls = [...form.querySelectorAll<Control>('input, textarea, select')]
  for (const control of controls) {
    control.addEventListener('blur', () => check(control))
    control.addEventListener('input', () => {
      if (control.getAttribute('aria-invalid') === 'true') check(control)
    })
  }
  let sent = false
  form.addEventListener('submit', (event) => {
    const wrong = controls.filter((control) => !check(control))[0]
    if (wrong || sent || !navigator.onLine) {
      event.preventDefault()
      if (wrong) wrong.focus()
      else if (!sent) say('You are offline. Your answer is kept on this page.', true)
      return
    }
    sent = true
    // The pressed button is part of the answer, so it is not disabled but marked.
    for (const button of form.querySelectorAll('button')) button.setAttribute('aria-disabled', 'true')
    if (event.submitter) event.submitter.textContent = 'Sending'
  })
  // Back from the next page: the browser shows this one as it was.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload()
  })
  // A public form is open to everyone: only a question can be answered by someone else.
  if (location.pathname.startsWith('/resume/')) watch(form, main, say, () => sent)
}

/** Is the field as its schema wants it? Puts what is wrong below it. */
function check(control: Control): boolean {
  const message = wrongWith(control)
  const id = `${control.id}.note`
  let note = document.getElementById(id)
  if (!note && message) {
    note = document.createElement('small')
    note.id = id
    ;(control.closest('.field') ?? control.parentElement)?.append(note)
    control.setAttribute('aria-describedby', id)
  }
  if (note) {
    // The description comes back when the field is right again.
    note.dataset.text ??= note.classList.contains('error') ? '' : (note.textContent ?? '')
    note.textContent = message || note.dataset.text
    note.className = message ? 'error' : 'quiet'
  }
  if (message) control.setAttribute('aria-invalid', 'true')
  else control.removeAttribute('aria-invalid')
  return !message
}

function wrongWith(control: Control): string {
  const { validity: v } = control
  if (v.valueMissing) return 'Required'
  if (v.badInput) return 'Enter a number.'
  if (v.stepMismatch) return 'Enter a whole number.'
  if (v.rangeUnderflow) return `At least ${(control as HTMLInputElement).min}.`
  if (v.rangeOverflow) return `At most ${(control as HTMLInputElement).max}.`
  if (v.typeMismatch) return control.getAttribute('type') === 'email' ? 'Enter an email address.' : 'Enter a URL.'
  if (control.classList.contains('code') && control.value.trim()) {
    try {
      JSON.parse(control.value)
    } catch {
      return 'Enter valid JSON.'
    }
  }
  return ''
}

/** Looks now and then whether the question is still open. What was typed stays on the page whatever happens. */
function watch(
  form: HTMLFormElement,
  main: Element,
  say: (text: string, isError: boolean) => void,
  isSent: () => boolean,
): void {
  const token = location.pathname.split('/').filter(Boolean).at(-1) ?? ''
  let timer: ReturnType<typeof setTimeout>
  const look = async (): Promise<void> => {
    clearTimeout(timer)
    if (document.hidden || isSent()) return
    try {
      const response = await fetch(`/api/resume/${token}`, {
        headers: { Accept: 'application/json' },
        cache: 'no-store',
      })
      if (response.ok) {
        const wait = (await response.json()) as { status: string; answered_by?: string | null }
        if (isSent()) return
        if (wait.status !== 'pending') return over(wait)
        say('', false)
      }
    } catch {
      say('Connection lost. Your answer is kept on this page.', true)
    }
    timer = setTimeout(() => void look(), POLL_MS)
  }
  const over = ({ status, answered_by }: { status: string; answered_by?: string | null }): void => {
    const words =
      status === 'answered'
        ? `This was just answered${answered_by ? ` by ${answered_by}` : ''}.`
        : status === 'expired'
          ? 'This question has expired.'
          : 'This question was withdrawn.'
    say(words, false)
    for (const each of form.querySelectorAll<HTMLButtonElement | Control>('button, input, textarea, select'))
      each.disabled = true
    const link = document.createElement('a')
    link.href = location.pathname
    link.textContent = 'Show the answer'
    main.querySelector('.notice:not([hidden])')?.append(' ', link)
  }
  document.addEventListener('visibilitychange', () => void look())
  addEventListener('online', () => void look())
  timer = setTimeout(() => void look(), POLL_MS)
}
