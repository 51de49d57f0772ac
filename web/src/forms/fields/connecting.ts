// The connections that fit a block, and the parts of a new one for it.

import type { ConnectionSpec, ConnectionView, JsonObject, KnownProvider } from '../../api/schemas'
import type { ServiceAuth } from './kind'

export type SecretKind = 'bearer' | 'basic' | 'api_key' | 'ssh'

/** A private key of OpenSSH, which may have a passphrase. */
export const isPrivateKey = (secret: string): boolean => secret.startsWith('-----BEGIN ')

/**
 * Where the block will send it, as far as that is written there, in the way that hosts of connections are written: `host` is HTTPS on
 * port 443; others have their port, and `http://` without TLS.
 */
export function hostOf(params: JsonObject, auth: ServiceAuth | undefined): string | null {
  for (const name of ['base_url', 'url', 'server'])
    if (typeof params[name] === 'string' && params[name]) {
      const found = /^(\w+:\/\/)?([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d+)?(?:[/?#]|$)/.exec(params[name])
      if (!found) return null
      const [, scheme = '', host = '', port = ''] = found
      const place = host.toLowerCase()
      if (scheme === 'http://') return `http://${place}${port || ':80'}`
      return scheme === 'https://' && port === ':443' ? place : `${place}${port}`
    }
  const host = auth?.host?.replace(/\{\{(\w+)\}\}/g, (all, name: string) => String(params[name] || all).toLowerCase())
  return host && /^(http:\/\/)?[a-z0-9.-]+(:\d+)?$/.test(host) ? host : null
}

/** `hosts` are names, `*.example.com`, perhaps with a port, or with a port and `http://`. The server has the same rule. */
export function fits(hosts: readonly string[], place: string): boolean {
  const [scheme, host, port] = partsOf(place)
  return hosts.some((each) => {
    const [wanted, name, there] = partsOf(each)
    if (wanted !== scheme || there !== port) return false
    return name.startsWith('*.') ? host.endsWith(name.slice(1)) : name === host
  })
}

function partsOf(place: string): [scheme: string, host: string, port: string] {
  const [, scheme = '', host = '', port = ':443'] = /^(https?:\/\/)?(.*?)(:\d+)?$/.exec(place.toLowerCase()) ?? []
  return [scheme === 'http://' ? scheme : '', host, port]
}

/** Connections of which one can be chosen: those for this host, and the one that is named already. */
export function offered(all: readonly ConnectionView[], host: string | null, chosen: string): ConnectionView[] {
  return all.filter((each) => each.name === chosen || host === null || fits(each.hosts, host))
}

/** Most services that have a key of their own take it there. */
export const KEY_HEADER = 'X-Api-Key'

export function specOf(
  kind: SecretKind,
  given: { secret: string; username: string; hosts: string; header: string; hostKey?: string; passphrase?: string },
  auth: ServiceAuth | undefined,
): ConnectionSpec {
  const hosts = given.hosts.split(/[\s,]+/).filter(Boolean)
  if (kind === 'basic') return { kind, hosts, secret: given.secret, username: given.username }
  if (kind === 'ssh') {
    const passphrase = (isPrivateKey(given.secret) && given.passphrase) || ''
    return {
      kind,
      hosts,
      secret: given.secret,
      username: given.username,
      host_key: given.hostKey?.trim() ?? '',
      passphrase,
    }
  }
  if (kind === 'bearer') return { kind, hosts, secret: given.secret }
  const where = auth?.kind === 'query' ? 'query' : 'header'
  return {
    kind,
    hosts,
    secret: given.secret,
    where,
    name: auth?.name ?? given.header.trim(),
    prefix: auth?.prefix ?? '',
  }
}

/** The well-known provider whose tokens the service takes; of a block without a service, one that has the host. */
export function providerFor(
  known: readonly KnownProvider[],
  auth: ServiceAuth | undefined,
  host: string | null,
): KnownProvider | undefined {
  if (auth) return known.find((each) => each.id === auth.provider)
  return host === null ? undefined : known.find((each) => fits(each.hosts, host))
}

/** A connection to a well-known provider, which may also be sent to the host of the block. */
export function specOfProvider(
  known: KnownProvider,
  given: { secret: string; clientId: string; scopes: string },
  host: string | null,
): ConnectionSpec {
  const { authorize_url, token_url, issuer, client_auth, pkce, parameters } = known
  const hosts = host === null || fits(known.hosts, host) ? [...known.hosts] : [...known.hosts, host]
  const client = { secret: given.secret, client_id: given.clientId, scopes: given.scopes.trim() }
  return { kind: 'oauth2_code', hosts, ...client, authorize_url, token_url, issuer, client_auth, pkce, parameters }
}
