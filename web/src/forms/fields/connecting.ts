// The connections that fit a block, and the parts of a new one for it.

import type { ConnectionSpec, ConnectionView, JsonObject } from '../../api/schemas'
import type { ServiceAuth } from './kind'

export type SecretKind = 'bearer' | 'basic' | 'api_key'

/** The host that the block will ask, as far as it is written there: its address, or that of its service. */
export function hostOf(params: JsonObject, auth: ServiceAuth | undefined): string | null {
  for (const name of ['base_url', 'url', 'server'])
    if (typeof params[name] === 'string' && params[name]) {
      const host = /^(?:\w+:\/\/)?([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::\d+)?(?:[/?#]|$)/.exec(params[name])?.[1]
      return host?.toLowerCase() ?? null
    }
  return auth?.host && !auth.host.includes('{') ? auth.host : null
}

/** `hosts` are names, `*.example.com`, perhaps with a port. */
export function fits(hosts: readonly string[], host: string): boolean {
  return hosts.some((each) => {
    const name = each.replace(/:\d+$/, '').toLowerCase()
    return name.startsWith('*.') ? host.endsWith(name.slice(1)) : name === host
  })
}

/** Connections of which one can be chosen: those for this host, and the one that is named already. */
export function offered(all: readonly ConnectionView[], host: string | null, chosen: string): ConnectionView[] {
  return all.filter((each) => each.name === chosen || host === null || fits(each.hosts, host))
}

export function specOf(
  kind: SecretKind,
  given: { secret: string; username: string; hosts: string },
  auth: ServiceAuth | undefined,
): ConnectionSpec {
  const hosts = given.hosts.split(/[\s,]+/).filter(Boolean)
  if (kind === 'basic') return { kind, hosts, secret: given.secret, username: given.username }
  if (kind === 'bearer') return { kind, hosts, secret: given.secret }
  const where = auth?.kind === 'query' ? 'query' : 'header'
  return { kind, hosts, secret: given.secret, where, name: auth?.name ?? 'Authorization', prefix: auth?.prefix ?? '' }
}
