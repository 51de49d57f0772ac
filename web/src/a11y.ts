// Announcements for screen readers: one polite region, at most one announcement a second, the last one wins.

let region: HTMLElement | null = null
let timer: ReturnType<typeof setTimeout> | null = null
let said = 0
let waiting = ''

const PAUSE_MS = 1000

export function announce(text: string): void {
  waiting = text
  if (timer !== null) return
  const pause = Math.max(0, said + PAUSE_MS - Date.now())
  timer = setTimeout(() => {
    timer = null
    said = Date.now()
    speak(waiting)
  }, pause)
}

function speak(text: string): void {
  if (typeof document === 'undefined') return
  if (!region) {
    region = document.createElement('div')
    region.setAttribute('aria-live', 'polite')
    region.className = 'visually-hidden'
    document.body.append(region)
  }
  region.textContent = text
}

/** Does the person want things to stay still? */
export function reducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}
