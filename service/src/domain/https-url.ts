/** Links that suppliers write: https without user name, in the characters that RFC 3986 allows. The service never fetches one. */

/** WHATWG URLs keep characters that RFC 3986, and so the passport's schema, does not allow. */
const plainHttps = /^https:(?:[\w\-.~:/?@!$&'()*+,;=]|%[0-9a-f]{2})+(?:#(?:[\w\-.~:/?@!$&'()*+,;=]|%[0-9a-f]{2})*)?$/i

/** Parses a link, or returns null when it is anything else. */
export function parseHttpsUrl(text: string): URL | null {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || !plainHttps.test(url.href)) return null
  return url
}
