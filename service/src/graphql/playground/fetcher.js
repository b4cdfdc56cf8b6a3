/** The fetcher of GraphiQL: queries and mutations by POST, subscriptions over the socket of the same path (spec §4.9, §6). */

/**
 * `key` returns the API key of the page; the `Authorization` header of a tab takes precedence and calls `onOwnHeader`.
 * `showStatus` shows one line about the key.
 */
export function createFetcher({ url, key, showStatus, onOwnHeader }) {
  return async (request, { headers } = {}) => {
    const all = new Headers(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value)]))
    if (all.has('authorization')) onOwnHeader()
    else if (key() === '') return failure('Type an API key above first. How to make one is said beside it.')
    else all.set('authorization', `Bearer ${key()}`)
    const { chosen, isSubscription } = chooseOperation(request)
    return isSubscription
      ? subscribe({ url, request: chosen, authorization: all.get('authorization'), showStatus })
      : post({ url, request: chosen, headers: all, showStatus })
  }
}

async function post({ url, request, headers, showStatus }) {
  headers.set('content-type', 'application/json')
  headers.set('accept', 'application/graphql-response+json, application/json')
  const response = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify(request),
    credentials: 'omit',
    signal: AbortSignal.timeout(60_000),
  })
  if (response.status === 401) showStatus('This key is refused: it is wrong or was revoked.')
  else if (response.status < 500) showStatus('The key is accepted.')
  return response.json().catch(() => failure(`The service answered ${response.status} without JSON.`))
}

/**
 * Opens a socket for one subscription. It is not an async generator, which could not end while it waits for an event: GraphiQL's stop
 * button has to end it at once.
 */
function subscribe({ url, request, authorization, showStatus }) {
  const client = globalThis.graphqlWs.createClient({
    url: url.href.replace(/^http/, 'ws'),
    connectionParams: { authorization },
    retryAttempts: 0, // a refusal is shown at once, and a lost connection is started again by hand
    on: { connected: () => showStatus('Subscribed: each event appears when it happens.') },
  })
  const events = client.iterate(request)
  const end = () => {
    showStatus('')
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

/** Returns GraphQL errors as they came, and the code and reason of a closed socket, which GraphiQL would not show. */
function failureOf(error) {
  if (Array.isArray(error)) return { errors: error }
  const { code, reason, message = 'The socket failed.' } = error ?? {}
  if (typeof code !== 'number') return failure(message)
  return failure(`The socket was closed: ${code}${reason ? ` ${reason}` : ''}. ${hints[code] ?? ''}`.trim())
}

const hints = { 4401: 'It needs an API key.', 4403: 'The key is wrong or was revoked.' }

function failure(message) {
  return { errors: [{ message }] }
}

/**
 * Reads the operation from the text that is sent. GraphiQL names the operation of the previous tab until a tenth of a second after another
 * tab is chosen. A text that cannot be parsed goes to the service, which reports why.
 */
function chooseOperation(request) {
  const operations = definitionsOf(request.query).filter(({ kind }) => kind === 'OperationDefinition')
  const named = operations.find(({ name }) => name?.value === request.operationName)
  const operation = named ?? (operations.length === 1 ? operations[0] : undefined)
  return {
    chosen: operation === undefined ? request : { ...request, operationName: operation.name?.value },
    isSubscription: operation?.operation === 'subscription',
  }
}

function definitionsOf(query) {
  try {
    return globalThis.GraphiQL.GraphQL.parse(query).definitions
  } catch {
    return []
  }
}
