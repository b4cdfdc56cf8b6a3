/** The languages of the pages: which one a visitor gets, in which direction it runs, and how it writes times (no cookie, nothing stored). */
import { ar } from './texts/ar.ts'
import { de } from './texts/de.ts'
import { en, type Texts } from './texts/en.ts'
import { es } from './texts/es.ts'
import { fr } from './texts/fr.ts'

export const languages = ['en', 'de', 'fr', 'es', 'ar'] as const
export type Language = (typeof languages)[number]

/** Each language's own name, as the switch shows it. */
export const languageNames: Readonly<Record<Language, string>> = {
  en: 'English',
  de: 'Deutsch',
  fr: 'Français',
  es: 'Español',
  ar: 'العربية',
}

/** Every sentence of the pages in every language; complete by type. */
export const textsOf: Readonly<Record<Language, Texts>> = { en, de, fr, es, ar }

export function directionOf(language: Language): 'ltr' | 'rtl' {
  return language === 'ar' ? 'rtl' : 'ltr'
}

/** The language asked for by `?lang=`, or null when it is none of ours. */
export function languageNamed(text: string | null): Language | null {
  return languages.find((language) => language === text?.toLowerCase()) ?? null
}

/** The best language of an `Accept-Language` header (RFC 9110 §12.5.4), by primary subtag; English when it names none of ours. */
export function languageFor(acceptLanguage: string | undefined): Language {
  let best: { language: Language; quality: number } = { language: 'en', quality: 0 }
  for (const range of (acceptLanguage ?? '').slice(0, 1_000).split(',')) {
    const [tag = '', ...parameters] = range.trim().split(';')
    const language = languageNamed(tag.split('-')[0] ?? '')
    const quality = qualityIn(parameters)
    if (language !== null && quality > best.quality) best = { language, quality }
  }
  return best.language
}

function qualityIn(parameters: readonly string[]): number {
  const text = parameters.map((parameter) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(parameter)?.[1]).find(Boolean)
  return text === undefined ? 1 : Number(text)
}

/** Unix seconds as a date and time with its zone; the zone is always UTC, because the server does not know the visitor's. */
export function timeIn(language: Language, seconds: number): string {
  return formatOf(language).format(new Date(seconds * 1000))
}

/** The name of an ISO 3166-1 country; undefined for a code that names none. */
export function countryIn(language: Language, code: string): string | undefined {
  if (!/^[A-Z]{2}$/.test(code)) return undefined
  return new Intl.DisplayNames(language, { type: 'region', fallback: 'none' }).of(code)
}

const formats = new Map<Language, Intl.DateTimeFormat>()

/** Making one costs more than using it a hundred times. */
function formatOf(language: Language): Intl.DateTimeFormat {
  const known = formats.get(language)
  if (known !== undefined) return known
  const made = new Intl.DateTimeFormat(language, {
    year: 'numeric',
    month: 'long',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone: 'UTC',
    timeZoneName: 'short',
  })
  formats.set(language, made)
  return made
}
