// The server's clock, estimated from its answers. Times of runs are the server's, so durations must not depend on the clock of
// this machine.

/** How old the Date of an answer may be: it names whole seconds, and a server may make it once a second. */
const DATE_AGE_MS = 2500

/** Milliseconds that the server's clock is ahead of the one here. */
let ahead = 0

/** Learn from an answer's Date header; `asked` and `answered` are moments of the clock here. */
export function learn(date: string | null, asked: number, answered: number): void {
  const at = Date.parse(date ?? '')
  if (Number.isNaN(at)) return
  // The answer was made between the two. A clock between them is accepted: these bounds are seconds apart.
  const [least, most] = [at - answered, at + DATE_AGE_MS - asked]
  ahead = least <= 0 && most >= 0 ? 0 : Math.max(least, Math.min(most, ahead))
}

/** Unix ms by the server's clock. */
export function serverNow(): number {
  return Date.now() + ahead
}
