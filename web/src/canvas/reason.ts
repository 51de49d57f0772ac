// An error, short enough for a card: the answer first, then the request. "POST http://x answered 503 Service
// Unavailable: try later" becomes "503 Service Unavailable: try later (POST http://x)". Pure.

const NAMED = /^(?:Uncaught )?(?:Error|TypeError|RangeError|SyntaxError|ReferenceError): /
const ASKED = /^([A-Z]{3,7} https?:\/\/\S+?):? (?:(?:answered|returned|responded with) )?(.+)$/

export function reasonOf(message: string): string {
  const line = (message.split('\n')[0] ?? '').trim()
  const plain = line.replace(NAMED, '')
  const asked = ASKED.exec(plain)
  if (asked) return `${asked[2]} (${asked[1]})`
  return line.startsWith('Error: ') ? plain : line
}
