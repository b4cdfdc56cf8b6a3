/** Opens Swagger UI over the description of this instance. It asks no other host: no validator, no fonts. */
const { SwaggerUIBundle } = globalThis

SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  tryItOutEnabled: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  filter: true,
  syntaxHighlight: false,
})

/**
 * Swagger UI marks these parts so that a screen reader misreads them. They are a link inside a button, a select without
 * a name, a skipped heading, and parts outside of any region. A long example scrolls, and the keyboard must reach it.
 */
const corrections = {
  '.opblock-summary-control a[href]': (link) => link.removeAttribute('href'),
  '#servers:not([aria-label])': (select) => select.setAttribute('aria-label', 'Server'),
  ':is(h3, h4, h5):not([aria-level])': (heading) => heading.setAttribute('aria-level', heading.tagName.slice(1) - 1),
  'pre.microlight:not([tabindex])': (example) => example.setAttribute('tabindex', '0'),
  '.information-container:not([role])': (part) => region(part, 'About'),
  '.schemes-server-container:not([role])': (part) => region(part, 'Server'),
  '.filter-container:not([role])': (part) => region(part, 'Filter'),
}

function region(part, label) {
  part.setAttribute('role', 'region')
  part.setAttribute('aria-label', label)
}

const reference = document.getElementById('reference')
new MutationObserver(() => {
  for (const [selector, correct] of Object.entries(corrections))
    for (const element of reference.querySelectorAll(selector)) correct(element)
}).observe(reference, { childList: true, subtree: true })
