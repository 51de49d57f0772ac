// A request to a webhook as a command for a shell, with the proof that the webhook asks for.

/** For POSIX shells; signatures are made by `openssl`. */
export function asEvent(url: string, auth: string, secret: string | null): string {
  const [before, proof] = proofOf(auth, quoted(secret ?? ''))
  return [
    `BODY='{"hello": "world"}'`,
    ...before,
    [`curl -X POST ${quoted(url)}`, `-H 'Content-Type: application/json'`, ...proof, '-d "$BODY"'].join(' \\\n  '),
  ].join('\n')
}

/** What is computed first, and the arguments that it goes into. */
function proofOf(auth: string, secret: string): [string[], string[]] {
  const hmac = (text: string): string =>
    `$(printf '%s' "${text}" | openssl dgst -sha256 -hmac ${secret} | sed 's/^.* //')`
  switch (auth) {
    case 'token':
      return [[], [`-H 'Authorization: Bearer '${secret}`]]
    case 'hmac':
      return [
        ['TIME=$(date +%s)', `SIGNATURE=${hmac('$TIME.$BODY')}`],
        ['-H "X-Weft-Timestamp: $TIME"', '-H "X-Weft-Signature: v1=$SIGNATURE"'],
      ]
    case 'github':
      return [[`SIGNATURE=${hmac('$BODY')}`], ['-H "X-Hub-Signature-256: sha256=$SIGNATURE"']]
    default:
      return [[], []]
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
