/** The frame around every page: strip of the test network, brand, language menu, landmarks (spec §4.6; WCAG 2.2 AA). */
import { hrefIn, textsIn, timeElement, type PageContext } from './context.ts'
import { fill, html, markupOf, type Html } from './html.ts'
import { icon, mark } from './icons.ts'
import { languageFacts, languages } from './languages.ts'
import type { PageTheme } from './theme.ts'
import type { Stage } from './verdict/situation.ts'

export type Page = {
  readonly title: string
  /** Path of this page without query, for the other languages. */
  readonly path: string
  readonly body: Html
  /** The picture before the body. */
  readonly stage?: Html | undefined
  /** The brand of the page; left out: Touchstone. */
  readonly theme?: PageTheme | null | undefined
  /** How the picture is shown; left out on pages without a verdict. */
  readonly field?: Stage | undefined
  /** Link elements of the head. */
  readonly links?: Html | undefined
  /** `tapped`: the script keeps the tap for reloads and the other languages; `retry`: for another try. */
  readonly tap?: 'tapped' | 'retry' | undefined
  /** Seconds in which the tap may be repeated. */
  readonly windowSeconds?: number | undefined
  /** The page stands in for one that could not be loaded. */
  readonly isOffline?: boolean | undefined
  /** Unix seconds of the check, for the foot. */
  readonly checkedAt?: number | undefined
}

/** Returns the page as a document. It is complete without script, which only adds actions such as copying. */
export function documentOf(context: PageContext, page: Page): string {
  const { language, assets } = context
  const { frame } = textsIn(context)
  const { theme, checkedAt } = page
  return markupOf(
    html`<!doctype html>
<html lang="${language}" dir="${languageFacts[language].direction}"${theme && html` data-theme="${theme.id}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Touchstone</title>
<link rel="stylesheet" href="${assets}/page.css">
${theme && html`<link rel="stylesheet" href="${theme.stylesheet}" />`}
<link rel="icon" type="image/svg+xml" href="${assets}/icon.svg">
${page.links}
<script type="module" src="${assets}/page.js"></script>
</head>
<body${page.tap && html` data-tap="${page.tap}"`}${page.windowSeconds !== undefined && html` data-window="${page.windowSeconds}"`}${page.isOffline && html` data-offline`}${html` data-path="${page.path}"`}>
<a class="skip" href="#result">${frame.skip}</a>
<p class="strip" role="region" aria-label="${frame.testnet}"><b>${frame.testnet}</b> <span>${frame.testnetMore}</span></p>
<header class="bar">
<a class="brand" href="${hrefIn(context, '/')}" aria-label="${theme ? `${theme.name}, Touchstone` : frame.home}">${theme ? theme.mark : mark}<span dir="ltr">${theme ? theme.name : 'Touchstone'}</span></a>
${languageMenu(context, page.path)}
</header>
<main class="page${page.stage && ' staged'}" id="result" tabindex="-1"${page.field && html` data-field="${page.field}"`}>
${page.stage}${page.body}
</main>
<footer class="foot">${mark}<div>${theme && brandLinks(context, theme)}<p>${checkedAt === undefined ? frame.about : fill(frame.checkedBy, { time: timeElement(context, checkedAt) })} ${frame.privacy}</p></div></footer>
</body>
</html>
`,
  )
}

/** Links the brand's own pages, which the operator listed. */
function brandLinks(context: PageContext, { links }: PageTheme): Html | false {
  const { frame } = textsIn(context)
  const shown = [
    [frame.contact, links.contact],
    [frame.support, links.support],
    [frame.privacyPage, links.privacy],
  ].filter((pair): pair is [string, string] => pair[1] !== undefined)
  return (
    shown.length > 0 &&
    html`<ul class="more">
      ${shown.map(([name, url]) => html`<li><a href="${url}" rel="noreferrer noopener">${name}</a></li>`)}
    </ul>`
  )
}

/** A menu of links, which opens the page anew where there is no script. On a tapped page that is the untapped one. */
function languageMenu(context: PageContext, path: string): Html {
  const links = languages.map((language) => {
    const current = language === context.language && html` aria-current="true"`
    return html`<li>
      <a
        href="${path}?lang=${language}"
        hreflang="${language}"
        lang="${language}"
        dir="${languageFacts[language].direction}"
        data-language${current}
        >${languageFacts[language].name}</a
      >
    </li>`
  })
  return html`<details class="lang">
    <summary>
      ${icon('globe')}<span class="vh">${textsIn(context).frame.languages}: </span>${context.language.toUpperCase()}
    </summary>
    <ul>
      ${links}
    </ul>
  </details>`
}
