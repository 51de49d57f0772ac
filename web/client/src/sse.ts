// Server-Sent Events, the reading side: text in, frames out (WHATWG HTML). With fetch, because an EventSource cannot send
// a token and stops at an HTTP error.

/** `id` is that of the frame itself; frames that are live only have none. */
export interface Frame {
  event: string
  data: string
  id: string | null
}

const FRAME_CHARS_MAX = 64 * 1024 * 1024

/** The frames of a body. A frame that a broken connection cut off is dropped. */
export async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame, void, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  let lines: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      if (rest.length > FRAME_CHARS_MAX) throw new Error(`an event is larger than ${FRAME_CHARS_MAX} characters`)
      const ends = rest.split(/\r\n|\n|\r(?!$)/)
      rest = ends.pop()!
      for (const line of ends) {
        if (line) lines.push(line)
        else {
          const frame = frameOf(lines)
          lines = []
          if (frame) yield frame
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined) // lost already
  }
}

function frameOf(lines: readonly string[]): Frame | null {
  const data: string[] = []
  let event = 'message'
  let id: string | null = null
  for (const line of lines) {
    const at = line.indexOf(':')
    const name = at < 0 ? line : line.slice(0, at)
    const value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '')
    if (name === 'data') data.push(value)
    else if (name === 'event') event = value
    else if (name === 'id') id = value
  }
  return data.length ? { event, data: data.join('\n'), id } : null
}
