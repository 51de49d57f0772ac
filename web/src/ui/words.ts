// Names, ids and errors in words.

/** 3f7a..19c2: enough to tell runs apart. The first digits are the same for all runs of many days. */
export function shortId(id: string): string {
  return id.length > 12 ? `${id.slice(-8, -4)}..${id.slice(-4)}` : id
}

/** `send_back` -> `Send back`. */
export function wordsOf(name: string): string {
  const words = name.replace(/[_-]+/g, ' ').trim()
  return words ? words[0]!.toUpperCase() + words.slice(1) : name
}

/** The path of a field of a document: `params.cases.0.when` -> `Cases 1, when`. */
export function fieldWords(path: string, numbered = true): string {
  const parts: string[] = []
  for (const part of path.split('.'))
    if (!/^\d+$/.test(part)) parts.push(wordsOf(part).toLowerCase())
    else if (numbered) parts.push(`${parts.pop() ?? ''} ${Number(part) + 1}`.trim())
  return wordsOf((parts.length > 1 ? parts.filter((part) => part !== 'params') : parts).join(', '))
}

/** A message below a field: begins with a capital letter, except for a command, and ends with a full stop. */
export function sentence(text: string): string {
  const plain = text.trim()
  const first = /^(pip|weft)\b/.test(plain) ? plain.charAt(0) : plain.charAt(0).toUpperCase() // names of commands
  return plain && `${first}${plain.slice(1)}${/[.?!:…]$/.test(plain) ? '' : '.'}`
}

/** Who is recorded, for people: "user:ada" is ada. */
export function whoOf(actor: string): string {
  if (actor === 'server-token') return 'the token of the server'
  return actor.replace(/^user:/, '').replace(/^token:/, 'token ')
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
