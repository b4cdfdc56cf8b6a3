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
    languages.map((language) => {
      const { frame, notices: words, verdict } = textsOf[language]
      const shown = {
        title: `${words.offlineTitle} · Touchstone`,
        '.word': words.offlineTitle,
        '.say': words.offlineText,
        '.btn span': verdict.tryAgain,
        '.skip': frame.skip,
        '.strip b': frame.testnet,
        '.strip span': frame.testnetMore,
        '.foot p': `${frame.about} ${frame.privacy}`,
      }
      const facts = { dir: languageFacts[language].direction, old: words.offlineOld, retry: verdict.tryAgain }
      return [language, { ...facts, shown }]
    }),
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
