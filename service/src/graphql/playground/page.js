/**
 * GraphiQL with one API key for all tabs. The key is held by a variable of this file only, never by a storage, an address or an attribute,
 * and the page's policy lets it go to this host only.
 */
import { createFetcher } from './fetcher.js'
import { keylessStorage } from './storage.js'

const { React, ReactDOM, GraphiQL } = globalThis
const field = document.getElementById('key')
const status = document.getElementById('said')
const defaultTabs = JSON.parse(document.getElementById('examples').textContent)
const storage = keylessStorage(defaultTabs)
const root = ReactDOM.createRoot(document.getElementById('playground'))
let key = ''
/** The key with which the schema was last requested. */
let keyOfSchema = ''
// The library of GraphiQL's dialogs reads the nonce for the style element that it adds.
globalThis.__webpack_nonce__ = document.getElementById('page').nonce

new MutationObserver(labelEditors).observe(document.getElementById('playground'), { childList: true, subtree: true })
field.addEventListener('input', () => {
  key = field.value.trim().replace(/^bearer\s+/i, '')
  if (/^ts_live_[\w-]{43}$/.test(key)) onKey()
})
field.addEventListener('change', onKey)
render(null)

function onKey() {
  if (key === keyOfSchema) return
  keyOfSchema = key
  status.textContent = ''
  render(key === '' ? null : undefined)
}

/** Renders with a new fetcher, which makes GraphiQL request the schema again unless `schema` is null. */
function render(schema) {
  const fetcher = createFetcher({
    url: new URL('graphql', location.href),
    key: () => key,
    showStatus: (text) => (status.textContent = text),
    onOwnHeader: () => schema === null && render(undefined),
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

/** Names the text fields of GraphiQL's editors after their section. */
function labelEditors() {
  for (const editor of document.querySelectorAll('.CodeMirror textarea:not([aria-label])'))
    editor.setAttribute('aria-label', editor.closest('section[aria-label]')?.getAttribute('aria-label') ?? 'Editor')
}
