/** The languages of the pages: choice for a visitor, direction, times and country names. No cookie is set, nothing is stored. */
import { memoize } from '../lib/memoize.ts'
import ar from './texts/ar.json' with { type: 'json' }
import de from './texts/de.json' with { type: 'json' }
import en from './texts/en.json' with { type: 'json' }
import es from './texts/es.json' with { type: 'json' }
import fr from './texts/fr.json' with { type: 'json' }

export const languages = ['en', 'de', 'fr', 'es', 'ar'] as const
export type Language = (typeof languages)[number]

type LanguageFacts = {
  /** The name of the language in itself, for the switch. */
  readonly name: string
  readonly direction: 'ltr' | 'rtl'
  /** Its letters are in Latin-1, which the fonts of every PDF reader have. */
  readonly isLatin: boolean
}

export const languageFacts: Readonly<Record<Language, LanguageFacts>> = {
  en: { name: 'English', direction: 'ltr', isLatin: true },
  de: { name: 'Deutsch', direction: 'ltr', isLatin: true },
  fr: { name: 'Français', direction: 'ltr', isLatin: true },
  es: { name: 'Español', direction: 'ltr', isLatin: true },
  ar: { name: 'العربية', direction: 'rtl', isLatin: false },
}

/** The English catalogue is the type of all. A missing sentence is a type error, another key or `{place}` fails a test. */
export type Texts = typeof en
export const textsOf: Readonly<Record<Language, Texts>> = { en, de, fr, es, ar }

/** Returns the language that `?lang=` names, or null when the pages do not have it. */
export function parseLanguage(text: string | null): Language | null {
  return languages.find((language) => language === text?.toLowerCase()) ?? null
}

/** Returns the best language of an `Accept-Language` header (RFC 9110 §12.5.4) by primary subtag, English without one. */
export function negotiateLanguage(acceptLanguage: string | undefined): Language {
  let best: { language: Language; quality: number } = { language: 'en', quality: 0 }
  for (const range of (acceptLanguage ?? '').slice(0, 1_000).split(',')) {
    const [tag = '', ...parameters] = range.trim().split(';')
    const language = parseLanguage(tag.split('-')[0] ?? '')
    const quality = parseQuality(parameters)
    if (language !== null && quality > best.quality) best = { language, quality }
  }
  return best.language
}

function parseQuality(parameters: readonly string[]): number {
  const text = parameters.map((parameter) => /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(parameter)?.[1]).find(Boolean)
  return text === undefined ? 1 : Number(text)
}

/** Writes unix seconds as a date and time in UTC: the server does not know the visitor's time zone. */
export function formatTime(language: Language, seconds: number): string {
  return formatsOf(language).time.format(new Date(seconds * 1000))
}

/** Writes unix seconds as a day in UTC. */
export function formatDate(language: Language, seconds: number): string {
  return formatsOf(language).date.format(new Date(seconds * 1000))
}

/** Writes unix seconds as a time of day in UTC. */
export function formatClock(language: Language, seconds: number): string {
  return formatsOf(language).clock.format(new Date(seconds * 1000))
}

/** Writes a span in whole seconds with its word, in the plural form of the language. */
export function formatSeconds(language: Language, seconds: number): string {
  return formatsOf(language).seconds.format(seconds)
}

/** Writes a percentage by its own sign and decimal mark, such as `12,5 %`. */
export function formatPercent(language: Language, percent: number): string {
  return formatsOf(language).percent.format(percent)
}

/** Returns the name of an ISO 3166-1 country; undefined for a code without a country. */
export function countryName(language: Language, code: string): string | undefined {
  if (!/^[A-Z]{2}$/.test(code)) return undefined
  return new Intl.DisplayNames(language, { type: 'region', fallback: 'none' }).of(code)
}

const day = { year: 'numeric', month: 'long', day: 'numeric' } as const
const clock = { hour: '2-digit', minute: '2-digit', timeZone: 'UTC', timeZoneName: 'short' } as const

/** Making a format costs more than using it a hundred times. */
const formatsOf = memoize(
  (language: Language) => ({
    time: new Intl.DateTimeFormat(language, { ...day, ...clock }),
    date: new Intl.DateTimeFormat(language, { ...day, timeZone: 'UTC' }),
    clock: new Intl.DateTimeFormat(language, clock),
    seconds: new Intl.NumberFormat(language, { style: 'unit', unit: 'second', unitDisplay: 'long' }),
    percent: new Intl.NumberFormat(language, { style: 'unit', unit: 'percent', maximumFractionDigits: 10 }),
  }),
  { max: languages.length },
)
