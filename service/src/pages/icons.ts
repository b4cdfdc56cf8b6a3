/** The pictures of the pages: each result has its own shape, so that nothing depends on colour. They repeat the text beside them. */
import { html, trustedHtml, type Html } from './html.ts'

const shapes = {
  /** A shield with a tick. */
  genuine:
    '<path d="M12 2.5 4.5 5.3v5.9c0 4.8 3.1 8.6 7.5 10.3 4.4-1.7 7.5-5.5 7.5-10.3V5.3z"/><path d="m8.3 11.9 2.6 2.6 4.9-5.1"/>',
  /** A page of a register. */
  record: '<path d="M6 2.8h8.2L19 7.6v13.6H6z"/><path d="M14 3v5h5M9 12.2h7M9 16.2h7"/>',
  /** Waves of a tap. */
  tap: '<path d="M5.5 9.2a8.8 8.8 0 0 1 0 5.6M9.3 7.2a13.6 13.6 0 0 1 0 9.6M13.1 5.2a18.6 18.6 0 0 1 0 13.6M17 3.3a24 24 0 0 1 0 17.4"/>',
  /** A round arrow. */
  again: '<path d="M20 12a8 8 0 1 1-2.6-5.9"/><path d="M20.2 2.8v4.6h-4.6"/>',
  /** A triangle with an exclamation mark. */
  alarm: '<path d="M12 3 1.9 20.5h20.2z"/><path d="M12 9.6v5M12 17.4v.2"/>',
  /** An octagon with a cross. */
  stop: '<path d="M8 2.6h8L21.4 8v8L16 21.4H8L2.6 16V8z"/><path d="m8.8 8.8 6.4 6.4m0-6.4-6.4 6.4"/>',
  /** A closed box. */
  closed: '<path d="M3 7.5 12 3l9 4.5v9L12 21l-9-4.5z"/><path d="m3 7.5 9 4.6 9-4.6M12 12.1V21"/>',
  /** A broken link. */
  apart:
    '<path d="m13.4 7.3 2-2a4 4 0 0 1 5.6 5.6l-2 2M10.6 16.700l-2 2a4 4 0 0 1-5.6-5.6l2-2M8.5 3v3M3 8.500h3M15.5 21v-3M21 15.500h-3"/>',
  /** A question mark in a circle. */
  unknown:
    '<circle cx="12" cy="12" r="9.2"/><path d="M9.3 9.400a2.8 2.8 0 1 1 4.3 2.400c-1 .7-1.6 1.2-1.6 2.400M12 17.200v.2"/>',
  /** A clock. */
  wait: '<circle cx="12" cy="12" r="9.2"/><path d="M12 6.800V12l3.4 2.2"/>',
} as const

export type IconName = keyof typeof shapes

export function icon(name: IconName): Html {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    ${trustedHtml(shapes[name])}
  </svg>`
}

/** The mark of the service: a streak on a stone. */
export const mark = html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
  <rect x="1.5" y="1.5" width="21" height="21" rx="6" />
  <path d="M6.5 17.5 17.5 6.5" />
</svg>`
