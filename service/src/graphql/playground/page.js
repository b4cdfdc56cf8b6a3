/**
 * GraphiQL with one API key for all tabs. The key is a variable of this file: no storage, no address and no attribute ever holds it, and
 * the page's policy lets it go to this host only.
 */
import { createFetcher } from './fetcher.js'
import { keylessStorage } from './storage.js'

const { React, ReactDOM, GraphiQL } = globalThis
const field = document.getElementById('key')
const said = document.getElementById('said')
const defaultTabs = JSON.parse(document.getElementById('examples').textContent)
const storage = keylessStorage(defaultTabs)
const root = ReactDOM.createRoot(document.getElementById('playground'))
let key = ''
let keyShown = '' // the key that the documentation was last asked for with

// The library behind GraphiQL's dialogs reads it for the style element that it adds.
globalThis.__webpack_nonce__ = document.getElementById('page').nonce

new MutationObserver(labelEditors).observe(document.getElementById('playground'), { childList: true, subtree: true })
field.addEventListener('input', () => {
  key = field.value.trim().replace(/^bearer\s+/i, '')
  if (/^ts_live_[\w-]{43}$/.test(key)) show()
})
field.addEventListener('change', show)
show(true)

/** A new fetcher makes GraphiQL ask for the schema anew; without a key there is nothing to ask with. */
function show(first) {
  if (first !== true && key === keyShown) return
  keyShown = key
  said.textContent = ''
  draw(key === '' ? null : undefined)
}

function draw(schema) {
  const fetcher = createFetcher({
    url: new URL('graphql', location.href),
    key: () => key,
    say: (text) => (said.textContent = text),
    onOwnHeader: () => schema === null && draw(undefined),
  })
  root.render(
    React.createElement(GraphiQL, {
      fetcher,
      schema,
      storage,
      defaultTabs,
      shouldPersistHeaders: false,
      defaultEditorToolsVisibility: 'variables',
      inputValueDeprecation: true,
    }),
  )
}

/** The text fields of GraphiQL's editors have no name of their own: they get that of their section. */
function labelEditors() {
  for (const editor of document.querySelectorAll('.CodeMirror textarea:not([aria-label])'))
    editor.setAttribute('aria-label', editor.closest('section[aria-label]')?.getAttribute('aria-label') ?? 'Editor')
}
