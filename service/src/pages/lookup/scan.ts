/** The scanner of the start page. The script shows camera, picture and NFC only where the browser has them. */
import { textsIn, type PageContext } from '../context.ts'
import { html, jsonBlock, type Html } from '../html.ts'
import { icon } from '../icons.ts'

/** The card is hidden until the script has found what this browser can read. */
export function scanCard(context: PageContext): Html {
  const { scan } = textsIn(context)
  const { title, hint, camera, picture, nfc, stop, ...spoken } = scan
  return html`<section class="card scan" aria-labelledby="scan" data-scan hidden>
    <h2 id="scan">${title}</h2>
    <p class="hint">${hint}</p>
    <div class="btns">
      <button type="button" data-camera hidden>${icon('camera')}<span>${camera}</span></button>
      <button type="button" class="btn quiet" data-nfc hidden>${icon('tap')}<span>${nfc}</span></button>
    </div>
    <label for="scan-picture">${picture}</label>
    <input id="scan-picture" type="file" accept="image/*" />
    <div class="viewer" hidden>
      <video muted playsinline aria-hidden="true"></video>
      <button type="button" data-stop>${stop}</button>
    </div>
    <div class="outcome" role="status"></div>
    ${jsonBlock('scan-texts', 'application/json', JSON.stringify(spoken))}
  </section>`
}
