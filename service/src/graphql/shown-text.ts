/** Supplier text of one line as it may be shown (spec §2.3). */
import { cleanText } from '@touchstone/verdict'

const longest = 200

/** Printable ASCII with single spaces is what cleaning leaves as it is. */
const plain = /^[!-~]+(?: [!-~]+)*$/

export function shown(text: string): string {
  return text.length <= longest && plain.test(text) ? text : cleanText(text, { max: longest })
}
