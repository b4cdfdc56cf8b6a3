/** Settings of the pages of the verification host: the visitor's browser, brand themes, ownership. */
import { z } from 'zod'
import { anyOf, file, mapped, openUrl, optional } from './parsers.ts'
import { setting } from './setting.ts'

export const pageSettings = z.object({
  publicRpcUrl: setting('PUBLIC_RPC_URL', optional(openUrl)).describe(
    'JSON-RPC provider that visitors’ browsers may ask on the pages, for the recheck; it must allow other origins. Never one with a key.',
  ),
  explorerUrl: setting(
    'EXPLORER_URL',
    mapped(optional(openUrl), (text) => text?.replace(/\/$/, '') ?? null),
  ).describe('Block explorer that the pages link transactions to, such as https://sepolia.basescan.org.'),
  ownership: setting('PAGE_OWNERSHIP', anyOf(['claim', 'transfer', 'report', 'passkey'])).describe(
    'Steps that a page offers to wallets: claim, transfer (the operator pays for both) and report (the owner pays); passkey: passkeys may sign too; empty: none.',
  ),
  themeDir: setting('THEME_DIR', file).describe('Folder of brand themes for the pages of items; empty: none.'),
})
