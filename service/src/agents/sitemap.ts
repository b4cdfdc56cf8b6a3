/** `/sitemap.xml` (sitemaps.org 0.9): the documentation. Pages of items are for whoever holds one, not for an index. */
import type { DocPage } from './discovery.ts'

export function sitemap(baseUrl: string, docs: readonly DocPage[]): string {
  const urls = docs.map(({ path }) => `<url><loc>${escaped(baseUrl + path)}</loc></url>`)
  return `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls.join('\n')}
</urlset>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
