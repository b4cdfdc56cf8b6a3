/** The seals of a verdict: each tone has its own shape, so that nothing depends on colour. A seal repeats the words beside it. */
import { html, trustedHtml, type Html } from '../html.ts'
import type { Tone } from './situation.ts'

const rings = Array.from({ length: 12 }, (_, turn) => `<ellipse rx="38.5" ry="30" transform="rotate(${turn * 15})"/>`)
const rosette = `<circle r="41.5" fill="var(--ground)"/><g fill="none" stroke="var(--tone)" stroke-width=".9" opacity=".85">${rings.join('')}</g><circle r="29.5" fill="var(--ground)"/><circle r="26.5" fill="var(--tone-solid)"/><circle r="23.3" fill="none" stroke="#fff" stroke-opacity=".45" stroke-width=".8"/>`
const dashed =
  '<circle r="41.5" fill="var(--ground)"/><circle r="34" fill="var(--ground)" stroke="var(--tone)" stroke-width="1.8" stroke-dasharray="4.45 3.45"/>'

const shapes: Readonly<Record<Tone | 'wait', string>> = {
  /** A rosette with a tick. */
  go: `${rosette}<path class="draw" pathLength="1" d="M-10.5.5l7 7.5 14-15.5" fill="none" stroke="#fff" stroke-width="3.6" stroke-linecap="round" stroke-linejoin="round"/>`,
  /** A rosette with a key. */
  own: `${rosette}<g fill="none" stroke="#fff" stroke-width="2.8" stroke-linecap="round" stroke-linejoin="round"><circle cx="-5.5" r="5.5"/><path d="M0 0h13.5M13.5 0v5M8 0v3.8"/></g>`,
  /** A diamond with an exclamation mark. */
  hold: '<path d="M0-41 41 0 0 41-41 0z" fill="var(--ground)"/><path d="M0-33 33 0 0 33-33 0z" fill="var(--tone-solid)" stroke="var(--tone-solid)" stroke-width="5" stroke-linejoin="round"/><path d="M0-28 28 0 0 28-28 0z" fill="none" stroke="#fff" stroke-opacity=".45" stroke-width=".8"/><path d="M0-12V3" stroke="#fff" stroke-width="3.8" stroke-linecap="round"/><circle cy="11" r="2.5" fill="#fff"/>',
  /** An octagon with a cross, in the ink of its ground: white on red, black on paper. */
  stop: '<path d="M-14.5-35h29L35-14.5v29L14.5 35h-29L-35 14.5v-29z" fill="none" stroke="currentcolor" stroke-width="3"/><path d="M-12.5-29.5h25l17 17v25l-17 17h-25l-17-17v-25z" fill="none" stroke="currentcolor" stroke-opacity=".5" stroke-width=".9"/><path d="M-10-10 10 10M10-10-10 10" stroke="currentcolor" stroke-width="4.2" stroke-linecap="round"/>',
  /** A dashed circle with a phone. */
  none: `${dashed}<g fill="none" stroke="var(--tone)" stroke-width="2.6" stroke-linecap="round"><rect x="-12" y="-15" width="14" height="27" rx="3.5"/><path d="M8-7a9 9 0 0 1 0 13M13-11.5a15.5 15.5 0 0 1 0 22"/><path d="M-6.5 7.5h3"/></g>`,
  /** A dashed circle with three dots. */
  wait: `${dashed}<g fill="var(--tone)"><circle cx="-12" r="3"/><circle r="3"/><circle cx="12" r="3"/></g>`,
}

export type Seal = keyof typeof shapes

export function sealPicture(name: Seal): Html {
  return html`<svg class="seal" viewBox="-42 -42 84 84" aria-hidden="true" focusable="false">
    ${trustedHtml(shapes[name])}
  </svg>`
}
