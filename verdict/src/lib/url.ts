/** Parses a URL, or returns `null`. Browsers of before 2024 lack `URL.parse`, older ones `URL.canParse` too. */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}
