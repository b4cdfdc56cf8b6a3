/**
 * Which form of a passport an `Accept` header gets (spec §9: signing is an addition to the unsigned version 1). The unsigned document is
 * the answer to everything that does not clearly prefer a signed one, so a client that knows nothing of signing sees no change.
 */
import { mediaRanges, namedQuality, qualityOf } from './media-range.ts'

/** Signed forms, best first: a JWS (VC-JOSE-COSE) and an embedded `eddsa-jcs-2022` proof. */
export const signedForms = ['application/vc+jwt', 'application/vc'] as const
export type SignedForm = (typeof signedForms)[number]
export type PassportForm = 'application/ld+json' | SignedForm

/**
 * The form to send, or null for 406. `offered` are the signed forms that this service has keys for.
 * A signed form is sent only when the header names it with a higher weight than the unsigned document has.
 */
export function negotiate(accept: string | null, offered: readonly SignedForm[]): PassportForm | null {
  const ranges = mediaRanges(accept)
  // Who also names a form for errors has not asked for the unsigned document.
  const wanted = ranges.filter(({ quality, type }) => quality > 0 && type !== 'application/problem+json')
  const onlySigned = wanted.length > 0 && wanted.every(({ type }) => signedForms.some((form) => form === type))
  const unsigned = Math.max(qualityOf(ranges, 'application/ld+json'), qualityOf(ranges, 'application/json'))
  let best: { readonly form: PassportForm | null; readonly quality: number } = {
    form: onlySigned ? null : 'application/ld+json',
    quality: onlySigned ? 0 : unsigned,
  }
  for (const form of signedForms) {
    const quality = offered.includes(form) ? namedQuality(ranges, form) : 0
    if (quality > best.quality) best = { form, quality }
  }
  return best.form
}
