/** The headline of a page's source. It is the default words of the verdict, or the text of a plain heading. */
export function headlineOf(page: string): string | undefined {
  return /<h1[^>]*>\s*(?:<span[^>]*class="word[^>]*>)?([^<]*)</.exec(page)?.[1]?.trim()
}
