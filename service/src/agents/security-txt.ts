/** `/.well-known/security.txt` (RFC 9116): whom to tell of a vulnerability. A service that has not been started for a year is not maintained. */

const validDays = 364

export function securityText(baseUrl: string, contact: string, startedAt: Date): string {
  const expires = new Date(startedAt.getTime() + validDays * 86_400_000)
  return `Contact: ${contact}
Expires: ${expires.toISOString().slice(0, 19)}Z
Preferred-Languages: en
Canonical: ${baseUrl}/.well-known/security.txt
`
}
