/**
 * Re-encodes a picture in a process of its own. So a hostile file cannot end the service or read its memory. Code that takes over the
 * decoder can still read the files of its user.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { cleanText } from '@touchstone/verdict'
import { z } from 'zod'
import { textWithin } from '../../lib/bytes.ts'
import { parseJson } from '../../lib/json.ts'
import { moduleUrl } from '../../lib/module-url.ts'
import { type EncodedPicture, maxFileBytes, maxFormBytes, pictureTypes, type PictureUse } from './limits.ts'

type Encoding =
  | { readonly ok: true; readonly picture: EncodedPicture }
  /** `reason` is a clause about the file. */
  | { readonly ok: false; readonly reason: string }

const program = fileURLToPath(moduleUrl('./encoder-process', import.meta.url))

/**
 * Decodes a JPEG, PNG, WebP or AVIF and writes it anew. The result is bounded in pixels and bytes, of its first frame, without metadata.
 * Other kinds, SVG among them, are refused.
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
  const read = textWithin(child.stdout, maxAnswerBytes).then((text) => {
    if (text === null) child.kill('SIGKILL')
    return text
  })
  // Both are awaited at once, because a process that cannot be started ends with an error only.
  const [written] = await Promise.all([read, once(child, 'close')])
  return pictureOf(parseJson(written ?? ''))
}

/** Three forms in base64. */
const maxAnswerBytes = 4 * maxFormBytes + 10_000

/** The answer is checked like input from outside: a hostile file may control the process that decoded it. */
const encoded = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    width: z.int().min(1).max(4_096),
    height: z.int().min(1).max(4_096),
    forms: z
      .array(
        z.object({
          type: z.enum(pictureTypes),
          data: z.base64().transform((text) => new Uint8Array(Buffer.from(text, 'base64'))),
        }),
      )
      .max(pictureTypes.length),
  }),
  z.object({
    ok: z.literal(false),
    reason: z.string().transform((text) => cleanText(text, { max: 200, multiline: false })),
  }),
])

function pictureOf(answer: unknown): Encoding {
  const { success, data } = encoded.safeParse(answer)
  if (!success) return { ok: false, reason: 'it cannot be decoded' }
  if (!data.ok) return { ok: false, reason: data.reason || 'it cannot be decoded' }
  const { width, height } = data
  const forms = data.forms.map(({ type, data: body }) => ({ type, body }))
  const isBounded = forms.every(({ body }) => body.length > 0 && body.length <= maxFormBytes)
  return isBounded
    ? { ok: true, picture: { width, height, forms } }
    : { ok: false, reason: 'it does not get small enough' }
}
