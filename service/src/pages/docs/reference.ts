/** The page of the interactive reference: a place for Swagger UI, and a way to the same list without script. */
import { html, markupOf } from '../html.ts'

/** `files` is the path of the folder of scripts and styles. */
export function referenceDocument(files: string): string {
  return markupOf(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <title>Try the API · Touchstone</title>
          <link rel="icon" type="image/svg+xml" href="${files}/icon.svg" />
          <link rel="stylesheet" href="${files}/swagger-ui.css" />
          <link rel="stylesheet" href="${files}/reference.css" />
          <script defer src="${files}/swagger-ui.js"></script>
          <script type="module" src="${files}/reference.js"></script>
        </head>
        <body>
          <header class="top">
            <p><a href="/docs/api">API reference</a> · <a href="/docs">Documentation</a></p>
            <noscript>
              <p>
                This page needs JavaScript. The same operations are in the <a href="/docs/api">API reference</a>, and in
                <a href="/openapi.json">openapi.json</a>.
              </p>
            </noscript>
          </header>
          <div id="reference"></div>
        </body>
      </html> `,
  )
}
