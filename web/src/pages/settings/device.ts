// A browser as people know it, from what it calls itself. The order matters: most of them also name those that they resemble.

const BROWSERS = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
] as const
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['Linux', 'Linux'],
] as const

const found = (names: readonly (readonly [string, string])[], agent: string): string | undefined =>
  names.find(([part]) => agent.includes(part))?.[1]

export function deviceName(agent: string): string {
  const browser = found(BROWSERS, agent)
  const system = found(SYSTEMS, agent)
  if (browser === undefined) return agent === '' ? 'Unknown' : agent.slice(0, 40)
  return system === undefined ? browser : `${browser} on ${system}`
}
