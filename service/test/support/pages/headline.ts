/** The headline of a page's source: the words of the verdict that count by default, or the text of a plain heading. */
export function headlineOf(page: string): string | undefined {
  return /<h1[^>]*>\s*(?:<span[^>]*class="word[^>]*>)?([^<]*)</.exec(page)?.[1]?.trim()
}
