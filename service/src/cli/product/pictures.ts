/** Pictures that a command is given as files: re-encoded, stored under their hash, and named by it in product details. */
import { realpath } from 'node:fs/promises'
import { basename, isAbsolute, relative, resolve, sep } from 'node:path'
import { encodePicture } from '../../assets/pictures/encode.ts'
import { maxFileBytes, type PictureUse } from '../../assets/pictures/limits.ts'
import type { StoredPicture } from '../../assets/pictures/store.ts'
import { parseDetails, pictureHashes } from '../../domain/product-details.ts'
import { isObject } from '../../lib/json.ts'
import { readBytes } from '../session/files.ts'
import { CommandError } from '../session/output.ts'
import type { Session } from '../session/session.ts'

type PictureSession = { readonly store: Pick<Session['store'], 'pictures'> }

/** Stores a picture file. Throws a CommandError for one that cannot be read or decoded. */
export async function importPicture({ store }: PictureSession, path: string, use: PictureUse): Promise<StoredPicture> {
  const bytes = await readBytes(path, maxFileBytes)
  if (bytes === null) throw new CommandError(`${path} has more than ${maxFileBytes / 1_000_000} MB.`)
  const encoded = await encodePicture(bytes, use)
  if (!encoded.ok)
    throw new CommandError(
      `${basename(path)} is no picture that can be stored: ${encoded.reason}. Give a JPEG, PNG, WebP or AVIF.`,
    )
  return await store.pictures.put(encoded.picture)
}

/**
 * Imports the pictures that a document names by `file`, and returns the document with their hashes. The files are in its folder or below. At
 * most three features are looked at, as many as a document may have.
 */
export async function withImportedPictures(
  session: PictureSession,
  folder: string,
  document: unknown,
): Promise<unknown> {
  if (!isObject(document)) return document
  const { picture, drawing, features } = document
  return {
    ...document,
    ...(picture !== undefined && { picture: await imported(session, folder, picture, 'picture') }),
    ...(drawing !== undefined && { drawing: await imported(session, folder, drawing, 'picture') }),
    ...(Array.isArray(features) && {
      features: await Promise.all(
        features.map(async (feature: unknown, index) =>
          isObject(feature) && feature['picture'] !== undefined && index < 3
            ? { ...feature, picture: await imported(session, folder, feature['picture'], 'detail') }
            : feature,
        ),
      ),
    }),
  }
}

async function imported(session: PictureSession, folder: string, picture: unknown, use: PictureUse): Promise<unknown> {
  if (!isObject(picture) || typeof picture['file'] !== 'string') return picture
  const { file, ...rest } = picture
  return { ...rest, ...(await importPicture(session, await inFolder(folder, file as string), use)) }
}

/** Returns the path of a file. Throws a CommandError for one outside the folder: suppliers write documents, and stored pictures are public. */
async function inFolder(folder: string, file: string): Promise<string> {
  const path = resolve(folder, file)
  const real = await Promise.all([realpath(folder), realpath(path)]).catch(() => null) // a missing file is named when it is read
  for (const [from, to] of [[folder, path] as const, ...(real === null ? [] : [real])]) {
    const way = relative(from, to)
    if (isAbsolute(way) || way.split(sep)[0] === '..')
      throw new CommandError(`${file} is not in the folder of the document; copy it there.`)
  }
  return path
}

/** Throws a CommandError where checked product details name a picture that is not stored. */
export async function requirePictures({ store }: PictureSession, body: string): Promise<void> {
  const hashes = pictureHashes(parseDetails(body) ?? {})
  const stored = await store.pictures.known(hashes)
  const missing = hashes.find((hash) => !stored.has(hash))
  if (missing !== undefined)
    throw new CommandError(`No picture is stored under ${missing}: name its file by "file", or import it first.`)
}
