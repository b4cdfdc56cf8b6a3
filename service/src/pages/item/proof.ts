/** The folded proof: how anyone repeats the result without this service: contract, block, commands, a recheck in the browser (spec §1, §2.2). */
import { clientCommand } from '../../domain/release.ts'
import { code, row, summary, textsIn, type PageContext } from '../context.ts'
import { fill, html, jsonBlock, type Html } from '../html.ts'
import { eventRows } from './history.ts'
import type { ItemView } from './view.ts'

export function proofCard(context: PageContext, view: ItemView): Html {
  const { proof, product, script } = textsIn(context)
  const { verdict, verdictLink, publicRpcUrl } = view
  const { contract, token_id, block_number, block_hash } = verdict.chainRef
  const rpc = publicRpcUrl ?? 'RPC_URL'
  const cast = `cast call ${contract} "getAsset(uint256)(address,uint64,uint8,uint8,uint16)" ${token_id} --block ${block_number} --rpc-url ${rpc}`
  const program = clientCommand(new URL(verdictLink).origin) ?? 'touchstone'
  const verify = `${program} verify ${verdictLink} --rpc ${rpc} --contract ${contract}`
  return html`<details class="proof">
      ${summary('code', proof.title, proof.what)}
      <div class="in">
        <p>${proof.text}</p>
        <dl class="facts2">
          ${row(proof.contract, code(contract))} ${row(product.token, code(token_id))}
          ${row(proof.state, code(`${verdict.state} (${verdict.state_code})`))}
          ${row(proof.block, code(String(block_number)))} ${row(proof.blockHash, code(block_hash))}
        </dl>
        <p><a href="${verdictLink}">${proof.verdictLink}</a></p>
        ${command('cast', proof.cast, cast, proof.copy)} ${command('verify', proof.verify, verify, proof.copy)}
        <p class="hint">${fill(proof.commandHint, { place: code(rpc) })}</p>
        ${publicRpcUrl !== null && recheckForm(context, view, publicRpcUrl)} ${eventRows(context, view)}
      </div>
    </details>
    ${jsonBlock('texts', 'application/json', JSON.stringify(script))}`
}

function command(id: string, label: string, line: string, copy: string): Html {
  return html`<figure class="command">
    <figcaption id="${id}-label">${label}</figcaption>
    <pre tabindex="0" role="region" aria-labelledby="${id}-label" dir="ltr"><code id="${id}">${line}</code></pre>
    <button type="button" data-copy="${id}" aria-describedby="${id}-label" hidden>${copy}</button>
  </figure>`
}

function recheckForm(context: PageContext, { verdict, verdictPath }: ItemView, publicRpcUrl: string): Html {
  const { proof } = textsIn(context)
  const { chainRef, state, flagged } = verdict
  return html`<h3>${proof.recheck}</h3>
    <p>${proof.recheckText}</p>
    ${tool({
      data: html`data-recheck="${verdictPath}" data-contract="${chainRef.contract}" data-state="${state}"
      data-flagged="${String(flagged)}"`,
      name: 'provider',
      label: proof.recheckProvider,
      attributes: html`type="url" value="${publicRpcUrl}"`,
      hint: fill(proof.recheckHint, { origin: code(new URL(publicRpcUrl).origin) }),
      button: proof.recheckButton,
    })}`
}

type Tool = {
  readonly data: Html
  readonly name: string
  readonly label: string
  readonly attributes: Html
  readonly hint: Html | string
  readonly button: string
}

/** Writes a form of one field that only the script can run. It is hidden until there is a script. */
export function tool({ data, name, label, attributes, hint, button }: Tool): Html {
  return html`<form class="tool" ${data} novalidate hidden>
    <label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      dir="ltr"
      ${attributes}
      aria-describedby="${name}-hint"
      spellcheck="false"
      autocomplete="off"
    />
    <p class="hint" id="${name}-hint">${hint}</p>
    <button>${button}</button>
    <div role="status" class="outcome"></div>
  </form>`
}
