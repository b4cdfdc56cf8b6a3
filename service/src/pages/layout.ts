/** The frame around every page: banner of the test network, language switch, landmarks (spec §4.6; WCAG 2.2 AA). */
import { hrefIn, textsIn, type PageContext } from './context.ts'
import { html, markupOf, type Html } from './html.ts'
import { icon, mark } from './icons.ts'
import { directionOf, languageNames, languages } from './languages.ts'

export type Page = {
  readonly title: string
  /** Path of this page without query, for the other languages. */
  readonly path: string
  /** Stands first in `main`, over the full width. */
  readonly alarm?: Html | undefined
  readonly body: Html
  /** Link elements of the head. */
  readonly links?: Html | undefined
  /** `tapped`: the script keeps the tap for reloads and the other languages; `retry`: for another try. */
  readonly tap?: 'tapped' | 'retry' | undefined
  /** Seconds in which the tap may be repeated. */
  readonly windowSeconds?: number | undefined
}

/** Returns the page as a document. It is complete without script, which only adds actions such as copying. */
export function documentOf(context: PageContext, page: Page): string {
  const { language, assets } = context
  const { frame } = textsIn(context)
  return markupOf(
    html`<!doctype html>
<html lang="${language}" dir="${directionOf(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Touchstone</title>
<link rel="stylesheet" href="${assets}/page.css">
<link rel="icon" type="image/svg+xml" href="${assets}/icon.svg">
${page.links}
<script type="module" src="${assets}/page.js"></script>
</head>
<body${page.tap && html` data-tap="${page.tap}"`}${page.windowSeconds && html` data-window="${page.windowSeconds}"`}${html` data-path="${page.path}"`}>
<a class="skip" href="#result">${frame.skip}</a>
<header>
<div class="top wrap"><a class="home" href="${hrefIn(context, '/')}" aria-label="${frame.home}">${mark}<span dir="ltr">Touchstone</span></a>
${languageSwitch(context, page.path)}</div>
<div class="testnet" role="note"><div class="wrap">${icon('alarm')}<p><strong>${frame.testnet}</strong> ${frame.testnetMore}</p></div></div>
</header>
<main id="result" tabindex="-1">
${page.alarm}
<div class="wrap">
${page.body}
</div>
</main>
<footer><div class="wrap"><p>${frame.about}</p><p>${frame.privacy}</p></div></footer>
</body>
</html>
`,
  )
}

/** The switch opens the page anew where there is no script: on a tapped page that is the untapped one. */
function languageSwitch(context: PageContext, path: string): Html {
  const links = languages.map((language) => {
    const current = language === context.language && html` aria-current="true"`
    const direction = directionOf(language)
    return html`<li>
      <a
        href="${path}?lang=${language}"
        hreflang="${language}"
        lang="${language}"
        dir="${direction}"
        data-language${current}
        >${languageNames[language]}</a
      >
    </li>`
  })
  return html`<nav class="languages" aria-label="${textsIn(context).frame.languages}">
    <ul>
      ${links}
    </ul>
  </nav>`
}
