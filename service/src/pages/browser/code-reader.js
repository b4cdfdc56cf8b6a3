/**
 * Reads codes in images with BarcodeDetector where the browser has it. Elsewhere a library of this host reads QR codes.
 */

/** Longest side of a picture that is read, in pixels. */
const longestSide = 1600

/** Returns a function that reads one code of an image: its text and, where it is known, the format. */
export async function codeReader(wanted) {
  const known = (await globalThis.BarcodeDetector?.getSupportedFormats().catch(() => [])) ?? []
  const formats = wanted.filter((format) => known.includes(format))
  if (formats.length > 0) {
    const detector = new globalThis.BarcodeDetector({ formats })
    return async (image) => {
      const [code] = await detector.detect(image)
      return code && { text: code.rawValue, format: code.format }
    }
  }
  const { default: decode } = await import('./qr/decode.js')
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('2d', { willReadFrequently: true })
  return async (image, width, height) => {
    const scale = Math.min(1, longestSide / Math.max(width, height))
    canvas.width = Math.max(1, Math.round(width * scale))
    canvas.height = Math.max(1, Math.round(height * scale))
    context.drawImage(image, 0, 0, canvas.width, canvas.height)
    try {
      const pixels = context.getImageData(0, 0, canvas.width, canvas.height)
      const effort = image instanceof HTMLVideoElement ? {} : { effort: 8, timeLimit: 3000 }
      return { text: decode(pixels, effort), format: 'qr_code' }
    } catch {
      return undefined // no code in this picture
    }
  }
}

/** Reads the camera until a code is there, or `isWanted` says that it is not awaited any more. Throws where there is no camera. */
export async function readCamera(video, read, isWanted) {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' }, audio: false })
  try {
    if (!isWanted()) return undefined
    video.srcObject = stream
    await video.play()
    while (isWanted()) {
      const code = await read(video, video.videoWidth, video.videoHeight)
      if (code !== undefined && isWanted()) return code
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    return undefined
  } finally {
    for (const track of stream.getTracks()) track.stop()
    if (video.srcObject === stream) video.srcObject = null // else a later scan has the video
  }
}
