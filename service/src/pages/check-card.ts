/** How anyone repeats the result without this service: contract, token and block, commands to copy, the client library in the browser (spec §1, §2.2). */
import { code, textsIn, type PageContext } from './context.ts'
import { fill, html, jsonBlock, type Html } from './html.ts'
import type { ItemView } from './item-view.ts'

type CheckView = Pick<ItemView, 'verdict' | 'verdictLink' | 'verdictPath' | 'publicRpcUrl'>

const place = 'RPC_URL'

export function checkCard(context: PageContext, view: CheckView): Html {
  const texts = textsIn(context)
  const { verdict, verdictLink, publicRpcUrl } = view
  const { contract, token_id, block_number, block_hash } = verdict.chainRef
  const rpc = publicRpcUrl ?? place
  const cast = `cast call ${contract} "getAsset(uint256)(address,uint64,uint8,uint8,uint16)" ${token_id} --block ${block_number} --rpc-url ${rpc}`
  const npx = `npx touchstone verify ${verdictLink} --rpc ${rpc}`
  return html`<section class="card" aria-labelledby="check">
    <h2 id="check">${texts.check}</h2>
    <p>${texts.checkText}</p>
    <dl class="rows">
      <div>
        <dt>${texts.contract}</dt>
        <dd>${code(contract)}</dd>
      </div>
      <div>
        <dt>${texts.token}</dt>
        <dd>${code(token_id)}</dd>
      </div>
      <div>
        <dt>${texts.block}</dt>
        <dd>${code(String(block_number))}</dd>
      </div>
      <div>
        <dt>${texts.blockHash}</dt>
        <dd>${code(block_hash)}</dd>
      </div>
    </dl>
    <p><a href="${verdictLink}">${texts.verdictLink}</a></p>
    <div class="ways">
      <div>
        ${command(context, 'cast', texts.castCommand, cast)} ${command(context, 'npx', texts.verifyCommand, npx)}
        <p class="hint">${fill(texts.commandHint, { place: code(rpc) })}</p>
      </div>
      <div>${publicRpcUrl !== null && recheckForm(context, view, publicRpcUrl)} ${ownerForm(context, view)}</div>
    </div>
    ${scriptTexts(context)}
  </section>`
}

function command(context: PageContext, id: string, label: string, line: string): Html {
  const texts = textsIn(context)
  return html`<figure class="command">
    <figcaption id="${id}-label">${label}</figcaption>
    <pre tabindex="0" role="region" aria-labelledby="${id}-label" dir="ltr"><code id="${id}">${line}</code></pre>
    <button type="button" data-copy="${id}" aria-describedby="${id}-label" hidden>${texts.copy}</button>
  </figure>`
}

/** Without script there is nothing to run, so the forms are not shown then. */
function recheckForm(context: PageContext, { verdict, verdictPath }: CheckView, publicRpcUrl: string): Html {
  const texts = textsIn(context)
  return html`<form
    class="tool"
    data-recheck="${verdictPath}"
    data-contract="${verdict.chainRef.contract}"
    data-state="${verdict.state}"
    data-flagged="${String(verdict.flagged)}"
    novalidate
    hidden
  >
    <h3>${texts.recheck}</h3>
    <p>${texts.recheckText}</p>
    <label for="provider">${texts.recheckProvider}</label>
    <input
      id="provider"
      name="provider"
      type="url"
      dir="ltr"
      value="${publicRpcUrl}"
      aria-describedby="provider-hint"
      spellcheck="false"
      autocomplete="off"
    />
    <p class="hint" id="provider-hint">${fill(texts.recheckHint, { origin: code(new URL(publicRpcUrl).origin) })}</p>
    <button>${texts.recheckButton}</button>
    <div role="status" class="outcome"></div>
  </form>`
}

function ownerForm(context: PageContext, { verdictPath }: CheckView): Html {
  const texts = textsIn(context)
  return html`<form class="tool" data-owner="${verdictPath}" novalidate hidden>
    <h3>${texts.owner}</h3>
    <label for="address">${texts.ownerLabel}</label>
    <input
      id="address"
      name="address"
      dir="ltr"
      placeholder="0x…"
      aria-describedby="address-hint"
      spellcheck="false"
      autocomplete="off"
      maxlength="42"
    />
    <p class="hint" id="address-hint">${texts.ownerText}</p>
    <button>${texts.ownerButton}</button>
    <div role="status" class="outcome"></div>
  </form>`
}

/** What the script says, in the language of the page. */
function scriptTexts(context: PageContext): Html {
  const { copied, recheckRunning, recheckSame, recheckChanged, recheckDiffers, recheckFailed, ...texts } =
    textsIn(context)
  const { ownerYes, ownerNo, ownerInvalid } = texts
  const said = { copied, recheckRunning, recheckSame, recheckChanged, recheckDiffers, recheckFailed }
  return jsonBlock('texts', 'application/json', JSON.stringify({ ...said, ownerYes, ownerNo, ownerInvalid }))
}
