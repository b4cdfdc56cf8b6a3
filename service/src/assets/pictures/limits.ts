/** Limits and types of pictures: of a file to be imported, and of the forms that are stored and served. */

/** `picture` is the product itself or a line drawing of it; `detail` is a part to compare. */
export type PictureUse = 'picture' | 'detail'

export const pictureTypes = ['image/avif', 'image/webp', 'image/jpeg'] as const
export type PictureType = (typeof pictureTypes)[number]

/** The largest form that is stored, in bytes. */
export const maxFormBytes = 60_000
/** The largest file that is read, in bytes. */
export const maxFileBytes = 20_000_000
/** The largest picture that is decoded: a small file may hold a huge one. */
export const maxPixels = 40_000_000

/** One form of a picture. */
export type PictureForm = { readonly type: PictureType; readonly body: Uint8Array }

/** The forms of a picture in their order of `pictureTypes`, and the size of the first one in pixels. */
export type EncodedPicture = {
  readonly width: number
  readonly height: number
  readonly forms: readonly PictureForm[]
}
