/** `/robots.txt` (RFC 9309): a crawler has no business with taps. Pages of items say themselves that they are not to be indexed. */

export function robotsText(baseUrl: string): string {
  return `User-agent: *
Disallow: /api/verify
Disallow: /api/dpp/
Disallow: /*picc=
Allow: /

Sitemap: ${baseUrl}/sitemap.xml
`
}
