/** Settings of the pages of the verification host: the visitor's browser, brand themes, claims. */
import { z } from 'zod'
import { file, mapped, optional, toggle, url } from './parsers.ts'
import { setting } from './setting.ts'

/** Settings of the pages for people. */
export const pageSettings = z.object({
  publicRpcUrl: setting(
    'PUBLIC_RPC_URL',
    optional(url('http', 'https')),
    'JSON-RPC provider that visitors’ browsers may ask on the pages, for the recheck; it must allow other origins. Never one with a key.',
  ),
  explorerUrl: setting(
    'EXPLORER_URL',
    mapped(optional(url('http', 'https')), (text) => text?.replace(/\/$/, '') ?? null),
    'Block explorer that the pages link transactions to, such as https://sepolia.basescan.org.',
  ),
  claims: setting(
    'PAGE_CLAIMS',
    toggle('off'),
    'on: visitors who tap an item that is for sale may claim it in the page with a wallet; the operator pays for the transaction.',
  ),
  themeDir: setting('THEME_DIR', file, 'Folder of brand themes for the pages of items; empty: none.'),
})
