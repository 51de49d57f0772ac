// A curl command as the params of an HTTP request, for those who have one from the documentation of a service.

import type { JsonObject } from '../../api/schemas'

const WITH_VALUE: Record<string, 'method' | 'header' | 'data' | 'user' | 'url' | 'agent' | 'none'> = {
  '-X': 'method',
  '--request': 'method',
  '-H': 'header',
  '--header': 'header',
  '-d': 'data',
  '--data': 'data',
  '--data-raw': 'data',
  '--data-binary': 'data',
  '--data-ascii': 'data',
  '--json': 'data',
  '-u': 'user',
  '--user': 'user',
  '--url': 'url',
  '-A': 'agent',
  '--user-agent': 'agent',
  '-o': 'none',
  '--output': 'none',
  '-m': 'none',
  '--max-time': 'none',
  '--connect-timeout': 'none',
}

export const isCurl = (text: string): boolean => /^\s*\$?\s*curl\s/.test(text)

/** null: it is no curl command, or it has no address. A user and password become a header, as curl sends them. */
export function paramsOfCurl(text: string): JsonObject | null {
  if (!isCurl(text)) return null
  const words = wordsOf(text.replace(/^\s*\$?\s*curl\s/, ''))
  const headers: Record<string, string> = {}
  const data: string[] = []
  let method: string | null = null
  let url: string | null = null
  let asQuery = false
  for (let i = 0; i < words.length; i++) {
    let word = words[i]!
    let value: string | undefined
    const long = /^(--[\w-]+)=(.*)$/s.exec(word)
    const short = /^(-[XHduA])(.+)$/s.exec(word)
    if (long) [word, value] = [long[1]!, long[2]]
    else if (short && !word.startsWith('--')) [word, value] = [short[1]!, short[2]]
    const takes = WITH_VALUE[word]
    if (takes) value ??= words[++i] ?? ''
    if (takes === 'method') method = value!.toUpperCase()
    else if (takes === 'header') {
      const at = value!.indexOf(':')
      if (at > 0) headers[value!.slice(0, at).trim()] = value!.slice(at + 1).trim()
    } else if (takes === 'data') {
      data.push(value!)
      if (word === '--json') headers['Content-Type'] ??= 'application/json'
    } else if (takes === 'user') headers.Authorization = `Basic ${btoa(value!)}`
    else if (takes === 'agent') headers['User-Agent'] = value!
    else if (takes === 'url') url = value!
    else if (word === '-G' || word === '--get') asQuery = true
    else if (word === '-I' || word === '--head') method = 'HEAD'
    else if (!word.startsWith('-') && url === null) url = word
  }
  if (!url) return null
  if (!/^\w+:\/\//.test(url)) url = `https://${url}`
  const body = data.join('&')
  if (asQuery && body) url += `${url.includes('?') ? '&' : '?'}${body}`
  const sent = body && !asQuery
  if (sent && !Object.keys(headers).some((name) => name.toLowerCase() === 'content-type'))
    headers['Content-Type'] = 'application/x-www-form-urlencoded'
  const verb = method ?? (sent ? 'POST' : 'GET')
  return {
    url,
    ...(verb === 'GET' ? {} : { method: verb }),
    ...(Object.keys(headers).length ? { headers } : {}),
    ...(sent ? { body } : {}),
  }
}

/** Words as a POSIX shell reads them; `$'…'` as browsers copy it. */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let word: string | null = null
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!
    if (char === '\\') {
      const next = text[++i]
      if (next !== undefined && !/\s/.test(next)) word = (word ?? '') + next
    } else if (char === "'" || (char === '$' && text[i + 1] === "'")) {
      const ansi = char === '$'
      if (ansi) i++
      word ??= ''
      for (i++; i < text.length && text[i] !== "'"; i++) {
        if (ansi && text[i] === '\\') word += { n: '\n', t: '\t', r: '\r' }[text[++i]!] ?? text[i]!
        else word += text[i]
      }
    } else if (char === '"') {
      word ??= ''
      for (i++; i < text.length && text[i] !== '"'; i++) {
        if (text[i] === '\\' && '"\\$`\n'.includes(text[i + 1] ?? ' ')) {
          i++
          if (text[i] !== '\n') word += text[i]
        } else word += text[i]
      }
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + char
  }
  if (word !== null) words.push(word)
  return words
}
