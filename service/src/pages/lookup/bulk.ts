/** The page of many items at once: a list goes in, one row for each line comes out. It works without a script, the download too. */
import { code, hrefIn, supplierText, textsIn, timeElement, type PageContext } from '../context.ts'
import { fill, html, type Html } from '../html.ts'
import { icon } from '../icons.ts'
import { formatSeconds } from '../languages.ts'
import { documentOf } from '../layout.ts'
import type { LookupItem, LookupRow } from './row.ts'

export const bulkPath = '/bulk'

/** Why a list was not looked up. */
export type BulkProblem =
  | { readonly kind: 'empty' | 'bytes' | 'unreadable' | 'chain' | 'fault' }
  | { readonly kind: 'lines'; readonly count: number }
  /** `left` lines fit into the visitor's budget until it is renewed. */
  | { readonly kind: 'quota'; readonly left: number; readonly seconds: number }

export type BulkView = {
  /** Lines that are looked up at one time. */
  readonly most: number
  /** The list as it was sent. */
  readonly text?: string | undefined
  readonly problem?: BulkProblem | undefined
  readonly result?: BulkResult | undefined
}

type BulkResult = {
  readonly rows: readonly LookupRow[]
  /** The same as a CSV file. */
  readonly csv: string
  /** Null where no line names an item. */
  readonly block: { readonly number: bigint } | null
  readonly checkedAt: number
}

export function bulkPage(context: PageContext, view: BulkView): string {
  const { bulk } = textsIn(context)
  const { result } = view
  return documentOf(context, {
    title: bulk.title,
    path: bulkPath,
    field: 'empty',
    links: html`<link rel="stylesheet" href="${context.assets}/lookup.css" />`,
    checkedAt: result?.checkedAt,
    body: html`<div class="flow wide bulk">
      <section class="card">
        <h1>${bulk.title}</h1>
        <p class="lead">${bulk.lead}</p>
        <p class="records">${icon('layers')}<span>${bulk.records}</span></p>
      </section>
      ${result !== undefined && resultCard(context, result)} ${listCard(context, view)}
    </div>`,
  })
}

function listCard(context: PageContext, { most, text = '', problem, result }: BulkView): Html {
  const { bulk } = textsIn(context)
  const isWrong = problem !== undefined
  return html`<section class="card list" aria-labelledby="list-title">
    <h2 id="list-title">${result === undefined ? bulk.list : bulk.another}</h2>
    ${isWrong && html`<p class="error" id="list-error" role="alert">${problemText(context, problem, most)}</p>`}
    <form method="post" action="${hrefIn(context, bulkPath)}" enctype="multipart/form-data" autocomplete="off">
      <label for="list">${bulk.paste}</label>
      <textarea
        id="list"
        name="list"
        rows="8"
        dir="ltr"
        spellcheck="false"
        autocapitalize="off"
        aria-describedby="${isWrong && 'list-error '}list-hint"
        ${isWrong && html` aria-invalid="true"`}
      >
${text}</textarea>
      <p class="hint" id="list-hint">${fill(bulk.hint, { most })}</p>
      <label for="file">${bulk.file}</label>
      <input id="file" name="file" type="file" accept=".csv,.txt,text/csv,text/plain" aria-describedby="file-hint" />
      <p class="hint" id="file-hint">${fill(bulk.fileHint, { columns: code('token_id, gtin, serial, link') })}</p>
      <button>${bulk.button}</button>
    </form>
  </section>`
}

function problemText(context: PageContext, problem: BulkProblem, most: number): Html {
  const { bulk, notices } = textsIn(context)
  const text = {
    empty: bulk.empty,
    unreadable: bulk.unreadableFile,
    bytes: bulk.tooLarge,
    lines: bulk.tooMany,
    quota: bulk.quota,
    chain: bulk.chain,
    fault: notices.faultText,
  }[problem.kind]
  const wait = problem.kind === 'quota' && { seconds: formatSeconds(context.language, problem.seconds) }
  return fill(text, { most, ...problem, ...wait })
}

function resultCard(context: PageContext, { rows, csv, block, checkedAt }: BulkResult): Html {
  const { bulk } = textsIn(context)
  const counts = [
    [bulk.reported, rows.filter(isReported).length, 'stop'],
    [bulk.unclear, rows.filter(({ kind }) => kind !== 'found').length, 'hold'],
    [bulk.clear, rows.filter((row) => row.kind === 'found' && !isReported(row)).length, 'none'],
  ] as const
  const where = block === null ? false : fill(bulk.block, { block: code(String(block.number)) })
  // A data link needs no script, and no second look at the register that might say something else.
  const file = `data:text/csv;charset=utf-8;base64,${Buffer.from(`\uFEFF${csv}`).toString('base64')}`
  return html`<section class="card result" aria-labelledby="result-title">
    <h2 id="result-title">${fill(bulk.resultTitle, { count: rows.length })}</h2>
    <p class="lead">${where} ${timeElement(context, checkedAt)}</p>
    <dl class="counts">
      ${counts.map(
        ([name, count, tone]) =>
          html`<div class="tone-${count === 0 ? 'none' : tone}">
            <dt>${name}</dt>
            <dd>${count}</dd>
          </div>`,
      )}
    </dl>
    <p class="btns">
      <a class="btn" href="${file}" download="touchstone-list.csv">${icon('save')}<span>${bulk.download}</span></a>
    </p>
    <table class="rows-of-list">
      <thead>
        <tr>
          <th scope="col">${bulk.line}</th>
          <th scope="col">${bulk.typed}</th>
          <th scope="col">${bulk.says}</th>
          <th scope="col">${bulk.item}</th>
          <th scope="col">${bulk.name}</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => rowOf(context, row))}
      </tbody>
    </table>
  </section>`
}

function isReported(row: LookupRow): boolean {
  return row.kind === 'found' && (row.item.reports.length > 0 || row.item.tampered)
}

/** Only a report has a colour: no line proves that an item is present, so none is green. */
function rowOf(context: PageContext, row: LookupRow): Html {
  const { bulk } = textsIn(context)
  const items = row.kind === 'found' ? [row.item] : row.kind === 'several' ? row.items : []
  const tone = isReported(row) ? 'stop' : row.kind === 'found' ? 'none' : 'hold'
  const says = row.kind === 'found' ? stateOf(context, row.item) : bulk[row.kind]
  const names = items.flatMap(({ name }) => name ?? [])
  return html`<tr class="tone-${tone}">
    <td data-name="${bulk.line}">${row.line}</td>
    <td data-name="${bulk.typed}"><bdi class="typed">${row.typed}</bdi></td>
    <td data-name="${bulk.says}"><b>${says}</b></td>
    <td data-name="${bulk.item}">
      ${items.length > 0 && items.map((item) => itemLink(context, item))}${row.kind === 'class' && html`<a href="${hrefIn(context, row.path)}">${bulk.openClass}</a>`}
    </td>
    <td data-name="${bulk.name}">
      ${names.length > 0 && html`<div class="framed">${names.map((name) => html`<p>${supplierText(name)}</p>`)}</div>`}
    </td>
  </tr>`
}

/** Names every report; without one, the state. */
export function stateOf(context: PageContext, { state, reports, tampered }: LookupItem): string {
  const { states, reports: names, bulk } = textsIn(context)
  const words = [...reports.map((report) => names[report]), ...(tampered ? [bulk.sealOpened] : [])]
  return words.length === 0 || (reports.length === 0 && tampered)
    ? [states[state], ...words].join(' · ')
    : words.join(' · ')
}

export function itemLink(context: PageContext, { path, tokenId, gtin, serial }: LookupItem): Html {
  const { product } = textsIn(context)
  return html`<a class="item-link" href="${hrefIn(context, path)}"
    >${gtin !== undefined && serial !== undefined ? html`${code(gtin)} ${code(serial)}` : html`${product.token} ${code(tokenId)}`}</a
  >`
}
