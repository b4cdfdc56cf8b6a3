/** The document at `/playground`: the field for the API key, how to make one, and the place where GraphiQL goes (spec §4.9, §5). */
import { playgroundExamples } from './playground-examples.ts'

/**
 * `assets` is the folder of the files, relative to the page, so that a host behind a path prefix works too. Returns the document for a
 * nonce of the content security policy.
 */
export function playgroundPage(assets: string): (nonce: string) => string {
  const [before = '', between = '', after = ''] = documentOf(assets).split(noncePlace)
  return (nonce) => before + nonce + between + nonce + after
}

const noncePlace = '{nonce}'

/** Everything in it is ours: no text of a supplier or visitor ever enters. */
function documentOf(assets: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>GraphQL playground · Touchstone</title>
<link rel="icon" type="image/svg+xml" href="${assets}/icon.svg">
<link rel="stylesheet" href="${assets}/graphiql.css">
<link rel="stylesheet" href="${assets}/page.css" nonce="${noncePlace}">
<script defer src="${assets}/react.js"></script>
<script defer src="${assets}/react-dom.js"></script>
<script defer src="${assets}/graphql-ws.js"></script>
<script defer src="${assets}/graphiql.js"></script>
<script type="module" id="page" src="${assets}/page.js" nonce="${noncePlace}"></script>
<script type="application/json" id="examples">${dataBlock(playgroundExamples)}</script>
</head>
<body>
<header>
<h1>Touchstone <span>GraphQL playground</span></h1>
<div class="key">
<label for="key">API key</label>
<input id="key" type="password" placeholder="ts_live_…" maxlength="200" autocomplete="off" autocapitalize="off" spellcheck="false" aria-describedby="hint">
<p id="said" role="status"></p>
</div>
<p id="hint">Make a key in another terminal: <code>npm run touchstone -- key create my-app</code>, with <code>--scope read,write</code>
for mutations. It goes with every request as <code>Authorization: Bearer &lt;key&gt;</code> and with a subscription as its connection
parameter; a tab’s own header goes first. It stays in this page’s memory: a reload forgets it.</p>
<noscript><p>The playground needs JavaScript. The endpoint takes POST requests at <code>/graphql</code>.</p></noscript>
</header>
<main id="playground" aria-label="GraphiQL"></main>
</body>
</html>
`
}

/** JSON in a data block, which is not run; `<` escaped, so that nothing in it ends the element. */
function dataBlock(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
