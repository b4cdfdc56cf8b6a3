/**
 * The page of a visit without a connection. It is a file like the style: the script fills it with the last answer of this tab, in grey and
 * marked as old. Without one it says that nothing was checked.
 */
import { retryButton, textsIn, type PageContext } from './context.ts'
import { html, jsonBlock } from './html.ts'
import { languageFacts, languages, textsOf } from './languages.ts'
import { documentOf } from './layout.ts'
import { plainVerdict } from './verdict/card.ts'

/** Returns the document. It is in English until the script has read the language of the visitor. */
export function offlinePage(assets: string): string {
  const context: PageContext = { language: 'en', chosen: false, assets }
  const { notices } = textsIn(context)
  const texts = Object.fromEntries(
    languages.map((language) => [
      language,
      {
        dir: languageFacts[language].direction,
        title: textsOf[language].notices.offlineTitle,
        text: textsOf[language].notices.offlineText,
        old: textsOf[language].notices.offlineOld,
        retry: textsOf[language].verdict.tryAgain,
      },
    ]),
  )
  return documentOf(context, {
    title: notices.offlineTitle,
    path: '/',
    field: 'empty',
    isOffline: true,
    body: html`<div class="flow">
      ${plainVerdict({ tone: 'none', title: notices.offlineTitle, text: notices.offlineText, seal: 'wait' })}
      ${retryButton(context)} ${jsonBlock('offline', 'application/json', JSON.stringify(texts))}
    </div>`,
  })
}
