/** Small texts for crawlers and for reports of vulnerabilities. */
import type { DocPage } from './instance.ts'

/** `/robots.txt` (RFC 9309): excludes taps. Pages of items have a robots header of their own. */
export function robotsText(baseUrl: string): string {
  return `User-agent: *
Disallow: /api/verify
Disallow: /api/dpp/
Disallow: /*picc=
Allow: /

Sitemap: ${baseUrl}/sitemap.xml
`
}

/** A service that was not restarted for a year is probably not maintained. */
const validDays = 364

/** `/.well-known/security.txt` (RFC 9116): the contact for reports of vulnerabilities. */
export function securityText(baseUrl: string, contact: string, startedAt: Date): string {
  const expires = new Date(startedAt.getTime() + validDays * 86_400_000)
  return `Contact: ${contact}
Expires: ${expires.toISOString().slice(0, 19)}Z
Preferred-Languages: en
Canonical: ${baseUrl}/.well-known/security.txt
`
}

/** `/sitemap.xml` (sitemaps.org 0.9): the documentation. Pages of items are not indexed. */
export function sitemap(baseUrl: string, docs: readonly DocPage[]): string {
  const urls = docs.map(({ path }) => `<url><loc>${escapeXml(baseUrl + path)}</loc></url>`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls.join('\n')}
</urlset>
`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
