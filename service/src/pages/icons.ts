/** The pictures of the pages: lines in the colour of the text. They repeat the words beside them. */
import { html, trustedHtml, type Html } from './html.ts'

const shapes = {
  check: '<path d="M5 12.5l4.5 4.5L19 7"/>',
  cross: '<path d="M6.5 6.5l11 11M17.5 6.5l-11 11"/>',
  dash: '<path d="M7 12h10"/>',
  down: '<path d="M6 9.5l6 6 6-6"/>',
  save: '<path d="M12 4v11M7.5 10.5L12 15l4.5-4.5M5 19.5h14"/>',
  globe: '<circle cx="12" cy="12" r="8.5"/><path d="M3.5 12h17M12 3.5c5 5 5 12 0 17M12 3.5c-5 5-5 12 0 17"/>',
  tag: '<path d="M4 12.5V5a1 1 0 0 1 1-1h7.5l8 8-8.5 8.5z"/><circle cx="8.5" cy="8.5" r="1.3"/>',
  swap: '<path d="M4 8.5h14.5L15 5M20 15.5H5.5L9 19"/>',
  key: '<circle cx="8" cy="12" r="4"/><path d="M12 12h8.5v3.5M17 12v2.5"/>',
  give: '<path d="M4 12v7h16v-7M12 15V4M8 7.5L12 4l4 3.5"/>',
  bell: '<path d="M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15zM10 20.5h4"/>',
  found: '<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5M8 10.5l2 2 3.5-4"/>',
  drop: '<path d="M12 3.5c4 5 6 7.5 6 10.5a6 6 0 0 1-12 0c0-3 2-5.5 6-10.5z"/>',
  wrench: '<path d="M20 7.5a4.6 4.6 0 0 1-6.2 5.2L7 19.5 4.5 17l6.8-6.8A4.6 4.6 0 0 1 16.5 4l-2.7 2.7.4 3.1 3.1.4z"/>',
  loop: '<path d="M7.5 7.5A7 7 0 0 1 19 12M16.5 16.5A7 7 0 0 1 5 12M19 7.5V12h-4.5M5 16.5V12h4.5"/>',
  layers: '<path d="M12 4l8.5 4.5L12 13 3.5 8.5zM4 12.5l8 4.3 8-4.3M4 16l8 4.3 8-4.3"/>',
  code: '<path d="M8.5 7.5L4 12l4.5 4.5M15.5 7.5L20 12l-4.5 4.5"/>',
  retry: '<path d="M19 12a7 7 0 1 1-2.5-5.4M19 4v4.5h-4.5"/>',
  lock: '<path d="M5.5 11h13v9h-13zM8 11V8a4 4 0 0 1 8 0v3"/>',
  camera: '<path d="M4 8h3.5L9 5.5h6L16.5 8H20v11H4z"/><circle cx="12" cy="13" r="3.4"/>',
  search: '<circle cx="10.5" cy="10.5" r="6"/><path d="M15 15l5 5"/>',
  tap: '<path d="M6 9.5a5 5 0 0 1 0 5M9.5 7a9 9 0 0 1 0 10M13 4.5a13 13 0 0 1 0 15M16.5 2.5a17 17 0 0 1 0 19"/>',
} as const

export type IconName = keyof typeof shapes

/** `look` is another class of the element. */
export function icon(name: IconName, look = ''): Html {
  return html`<svg class="ic ${look}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    ${trustedHtml(shapes[name])}
  </svg>`
}

/** The mark of the service: a streak on a stone. */
export const mark = html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
  <rect x="1.5" y="1.5" width="21" height="21" rx="6" />
  <path d="M6.5 17.5 17.5 6.5" />
</svg>`

/** A hand-held phone over the chip of an item, for those who have not tapped yet. */
export const tapDrawing = html`<svg class="tapping" viewBox="0 -18 220 134" aria-hidden="true" focusable="false">
  ${trustedHtml('<g fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round"><path d="M18 112h184" opacity=".5"/><path d="M60 112V92q0-6 6-6h88q6 0 6 6v20"/><path d="M66 93h88" stroke-dasharray="4 3" opacity=".7"/><rect x="98" y="96" width="24" height="10" rx="2"/><g transform="translate(8 -14) rotate(148 117 45)"><rect x="94" y="6" width="46" height="78" rx="8" fill="var(--ground)"/><path d="M110 12h14"/><rect x="99" y="20" width="36" height="52" rx="3" opacity=".5"/></g></g><g fill="none" stroke="var(--accent)" stroke-width="1.8" stroke-linecap="round"><path d="M101 86q9-8 18 0"/><path d="M95 79q15-13 30 0" opacity=".7"/></g>')}
</svg>`
