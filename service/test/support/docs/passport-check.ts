/** The check of a signed passport that docs/passports.md prints. */
import { readFile } from 'node:fs/promises'

type Check = (jws: string, origin: string) => Promise<{ readonly id: string }>

/** Loads the program of the page. Modules of data: URLs have no packages of their own. */
export async function documentedCheck(): Promise<Check> {
  const source = await readFile(new URL('../../../../docs/passports.md', import.meta.url), 'utf8')
  const [, program = ''] = /^```js\n(import [^]*?)^```/m.exec(source) ?? []
  const code = program.replace("'jose'", `'${import.meta.resolve('jose')}'`)
  const module = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { checkPassport: Check }
  return module.checkPassport
}
