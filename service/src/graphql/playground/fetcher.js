/** How GraphiQL asks: queries and mutations by POST, subscriptions over the socket of the same path (spec §4.9, §6). */

/**
 * `key` gives the API key of the page; a tab's own `Authorization` header goes before it. `say` shows one line about the key,
 * `onOwnHeader` is called when a tab brought its own.
 */
export function createFetcher({ url, key, say, onOwnHeader }) {
  return async (asked, { headers } = {}) => {
    const all = new Headers(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]))
    const isOwn = all.has('authorization')
    if (!isOwn && key() === '') return refused('Type an API key above first. How to make one is said beside it.')
    if (!isOwn) all.set('authorization', `Bearer ${key()}`)
    if (isOwn) onOwnHeader()
    const { request, isSubscription } = operationOf(asked)
    return isSubscription
      ? subscribe({ url, request, authorization: all.get('authorization'), say })
      : post({ url, request, headers: all, say })
  }
}

async function post({ url, request, headers, say }) {
  headers.set('content-type', 'application/json')
  headers.set('accept', 'application/graphql-response+json, application/json')
  const response = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify(request),
    credentials: 'omit',
    signal: AbortSignal.timeout(60_000),
  })
  if (response.status === 401) say('This key is refused: it is wrong or was revoked.')
  else if (response.status < 500) say('The key is accepted.')
  return response.json().catch(() => refused(`The service answered ${response.status} without JSON.`))
}

/**
 * A socket for one subscription. Not an async generator: one that waits for the next event cannot be ended, and GraphiQL's stop button
 * has to end it at once.
 */
function subscribe({ url, request, authorization, say }) {
  const client = globalThis.graphqlWs.createClient({
    url: url.href.replace(/^http/, 'ws'),
    connectionParams: { authorization },
    retryAttempts: 0, // a refusal is shown at once; whoever lost the connection starts it again
    on: { connected: () => say('Subscribed: each event appears when it happens.') },
  })
  const events = client.iterate(request)
  const end = () => {
    say('')
    void client.dispose()
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      try {
        const event = await events.next()
        if (event.done) end()
        return event
      } catch (error) {
        end()
        return { done: false, value: failureOf(error) } // the next one is done
      }
    },
    async return() {
      end()
      return events.return()
    },
  }
}

/** GraphQL errors as they came; of a closed socket its code and reason, which GraphiQL would not show. */
function failureOf(error) {
  if (Array.isArray(error)) return { errors: error }
  if (typeof error?.code === 'number')
    return refused(
      `The socket was closed: ${error.code}${error.reason ? ` ${error.reason}` : ''}. ${hints[error.code] ?? ''}`.trim(),
    )
  return refused(error?.message ?? 'The socket failed.')
}

const hints = { 4401: 'It needs an API key.', 4403: 'The key is wrong or was revoked.' }

function refused(message) {
  return { errors: [{ message }] }
}

/**
 * What is run, read from the text that is sent: for a tenth of a second after another tab is chosen, GraphiQL still names the operation of
 * the tab before. A text that cannot be parsed goes to the service, which says why.
 */
function operationOf(request) {
  const operations = definitionsOf(request.query).filter(({ kind }) => kind === 'OperationDefinition')
  const named = operations.find(({ name }) => name?.value === request.operationName)
  const chosen = named ?? (operations.length === 1 ? operations[0] : undefined)
  return {
    request: chosen === undefined ? request : { ...request, operationName: chosen.name?.value },
    isSubscription: chosen?.operation === 'subscription',
  }
}

function definitionsOf(query) {
  try {
    return globalThis.GraphiQL.GraphQL.parse(query).definitions
  } catch {
    return []
  }
}
