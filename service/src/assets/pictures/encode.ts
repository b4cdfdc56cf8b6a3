/** Re-encodes a picture in a process of its own, so that a hostile file can neither end the service nor read its secrets. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { isObject, parseJson } from '../../lib/json.ts'
import { moduleUrl } from '../../lib/module-url.ts'
import type { Encoded } from './encoder-process.ts'
import { type EncodedPicture, maxFileBytes, type PictureUse } from './limits.ts'

type Encoding =
  | { readonly ok: true; readonly picture: EncodedPicture }
  /** `reason` is a clause about the file. */
  | { readonly ok: false; readonly reason: string }

const program = fileURLToPath(moduleUrl('./encoder-process', import.meta.url))

/**
 * Decodes a JPEG, PNG, WebP or AVIF and writes it anew: bounded in pixels and bytes, of its first frame, without metadata. Other kinds,
 * SVG among them, are refused.
 */
export async function encodePicture(file: Uint8Array, use: PictureUse, timeoutMs = 60_000): Promise<Encoding> {
  if (file.length > maxFileBytes) return { ok: false, reason: `it has more than ${maxFileBytes / 1_000_000} MB` }
  const child = spawn(
    process.execPath,
    ['--permission', '--allow-addons', '--allow-fs-read=*', '--no-warnings', '--max-old-space-size=256', program, use],
    { env: {}, stdio: ['pipe', 'pipe', 'ignore'], timeout: timeoutMs, killSignal: 'SIGKILL' },
  )
  child.stdin.on('error', () => {}) // the process ended before it had read everything
  child.stdin.end(file)
  const ended = once(child, 'close')
  const written = await text(child.stdout)
  await ended
  const answer = parseJson(written)
  return isObject(answer) ? pictureOf(answer as Encoded) : { ok: false, reason: 'it cannot be decoded' }
}

function pictureOf(answer: Encoded): Encoding {
  if (!answer.ok) return answer
  const { width, height } = answer
  const forms = answer.forms.map(({ type, data }) => ({ type, body: new Uint8Array(Buffer.from(data, 'base64')) }))
  return { ok: true, picture: { width, height, forms } }
}
