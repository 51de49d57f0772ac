// The SharedWorker: one stream for each run that any tab looks at, passed on to all of them. With HTTP/1.1 a browser has six
// connections to a server; one stream per tab would use them up.

import { RunStream, type StreamMessage } from './stream'

/** What a tab says. `lock`: a Web Lock the tab holds for as long as it lives. */
export type TabMessage =
  | { type: 'follow'; run: string; after: number }
  | { type: 'leave'; run: string }
  | { type: 'retry'; run: string }
  | { type: 'hello'; lock: string }
  | { type: 'bye' }
/** Messages to a tab. */
export type WorkerMessage = { run: string; message: StreamMessage }

interface Shared {
  stream: RunStream
  ports: Set<MessagePort>
  down: StreamMessage | null
}

const runs = new Map<string, Shared>()
const scope = globalThis as unknown as { onconnect: (event: MessageEvent) => void }

scope.onconnect = (event) => {
  const port = event.ports[0]!
  port.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    switch (data.type) {
      case 'follow':
        return follow(port, data.run, data.after)
      case 'leave':
        return leave(port, data.run)
      case 'retry':
        return runs.get(data.run)?.stream.retry()
      case 'bye':
        return drop(port)
      // Granted when the tab is gone, however it went.
      case 'hello':
        return void navigator.locks?.request(data.lock, () => drop(port))
    }
  }
}

function follow(port: MessagePort, run: string, after: number): void {
  const known = runs.get(run)
  if (known) {
    known.ports.add(port)
    if (known.stream.isOpen) send(port, run, { kind: 'open', seq: known.stream.seq })
    else if (known.down) send(port, run, known.down)
    return
  }
  const shared: Shared = { ports: new Set([port]), down: null, stream: null as unknown as RunStream }
  runs.set(run, shared)
  shared.stream = new RunStream(run, after, (message) => {
    shared.down = message.kind === 'down' ? message : message.kind === 'open' ? null : shared.down
    for (const each of shared.ports) send(each, run, message)
    if (message.kind === 'ended') runs.delete(run)
  })
}

function leave(port: MessagePort, run: string): void {
  const shared = runs.get(run)
  if (!shared?.ports.delete(port) || shared.ports.size) return
  shared.stream.close()
  runs.delete(run)
}

function drop(port: MessagePort): void {
  for (const run of [...runs.keys()]) leave(port, run)
}

function send(port: MessagePort, run: string, message: StreamMessage): void {
  port.postMessage({ run, message } satisfies WorkerMessage)
}
