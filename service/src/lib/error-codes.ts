/** Every protocol derives its error codes and statuses from this one table. `npm run docs` makes docs/error-codes.md from it. */
import { paymentErrors, retryPayment, nothingCharged } from './error-rows/payments.ts'
import type { ErrorRow } from './error-rows/row.ts'

export const errorCodes = {
  UNAUTHENTICATED: {
    meaning: 'The API key is missing, wrong or revoked (401).',
    remedy: 'Send `Authorization: Bearer <API_KEY>`; make a key with `touchstone key create`.',
    graphql: 'UNAUTHENTICATED',
  },
  FORBIDDEN: {
    meaning:
      'The key lacks the scope or may not be used from this network. Or the document is not a trusted one, or the Host or Origin not known here.',
    remedy:
      'Make a key with `--scope read,write`, and with your own `--network`. Ask the operator to add the document. For MCP use the public address of the service.',
    graphql: 'FORBIDDEN',
    mcp: [-32_000, 403],
  },
  BAD_USER_INPUT: {
    meaning: 'The request or the document is not valid.',
    remedy: 'Read the message and `locations`.',
    graphql: 'BAD_USER_INPUT',
  },
  PERSISTED_QUERY_NOT_SUPPORTED: {
    meaning: 'The service keeps no documents by their hash. Clients compare the message `PersistedQueryNotSupported`.',
    remedy: 'Send the text of the document in `query`. Clients of Apollo and urql do so by themselves.',
    graphql: 'PERSISTED_QUERY_NOT_SUPPORTED',
  },
  EVENTS_GONE: {
    meaning:
      'Events after this position are no longer kept (`EVENT_RETENTION_DAYS`), or the database was restored from before it.',
    remedy: 'Read the present state with queries, then go on from the position `extensions.oldest`.',
    graphql: 'EVENTS_GONE',
  },
  INVALID_BODY: {
    meaning: 'The body must be a JSON object such as {"assetId":"1","chain":"base-sepolia"}; "eas" is true or false.',
    remedy: 'Send a JSON object.',
    gateway: { error: 'invalid_body', status: 400 },
  },
  UNSUPPORTED_CHAIN: {
    meaning: 'The only supported chain is base-sepolia.',
    remedy: 'Send `base-sepolia`, or leave `chain` out.',
    gateway: { error: 'unsupported_chain', status: 400 },
  },
  INVALID_TOKEN_ID: {
    meaning: 'The id is not a decimal integer from 0 to 2^256-1.',
    remedy: 'Send digits only, as text: no `0x`, no sign, no spaces.',
    rest: 400,
    tool: true,
    gateway: {
      error: 'invalid_asset_id',
      status: 400,
      message: 'assetId must be a decimal string from 0 to 2^256-1, such as "42".',
    },
  },
  ASSET_ID_NOT_ATTESTABLE: {
    meaning:
      'An attestation of this asset id could be mistaken for a transaction, so none is sold. Read it without payment.',
    remedy: 'Use the keyless read for this id.',
    gateway: { error: 'asset_id_not_attestable', status: 400 },
  },
  INVALID_AGENT_ID: {
    meaning: 'The agent id is not a decimal integer from 0 to 2^256-1.',
    remedy: 'Send a decimal id.',
    rest: 400,
  },
  INVALID_ARGUMENT: {
    meaning: 'A tool, look-up or form received another key, type or value than it takes.',
    remedy: 'Send only what the message or the schema lists; `token_id` is text.',
    rest: 400,
    tool: true,
  },
  INVALID_PARAMS: {
    meaning: 'A parameter of the A2A request is wrong; `field` names it.',
    remedy: 'Correct the field that the details name.',
    a2a: ['INVALID_PARAMS', -32_602, 400, 'INVALID_ARGUMENT'],
  },
  INVALID_REQUEST: {
    meaning: 'The body is not a JSON-RPC 2.0 request.',
    remedy: 'Send one request object with `jsonrpc`, `method` and `id`.',
    mcp: [-32_600, 400],
    a2a: ['INVALID_REQUEST', -32_600, 400, 'INVALID_ARGUMENT'],
  },
  PARSE_ERROR: {
    meaning: 'The body is not JSON.',
    remedy: 'Send JSON in UTF-8, without a content coding.',
    mcp: [-32_700, 400],
    a2a: ['PARSE_ERROR', -32_700, 400, 'INVALID_ARGUMENT'],
  },
  CONTENT_TYPE_NOT_SUPPORTED: {
    meaning: 'The content type is not accepted.',
    remedy: 'Send `Content-Type: application/json`, and parts of text or data.',
    mcp: [-32_000, 415],
    a2a: ['CONTENT_TYPE_NOT_SUPPORTED', -32_005, 400, 'INVALID_ARGUMENT'],
  },
  VERSION_NOT_SUPPORTED: {
    meaning: 'The agent speaks A2A 1.0 only.',
    remedy: 'Send the header `A2A-Version: 1.0`.',
    a2a: ['VERSION_NOT_SUPPORTED', -32_009, 400, 'FAILED_PRECONDITION'],
  },
  TASK_NOT_FOUND: {
    meaning: 'The task does not exist, or not any more.',
    remedy: 'Send the message again without a task id.',
    a2a: ['TASK_NOT_FOUND', -32_001, 404, 'NOT_FOUND'],
  },
  TASK_NOT_CANCELABLE: {
    meaning: 'The task has already ended.',
    remedy: 'Get the task; its result stays.',
    a2a: ['TASK_NOT_CANCELABLE', -32_002, 400, 'FAILED_PRECONDITION'],
  },
  PUSH_NOTIFICATION_NOT_SUPPORTED: {
    meaning: 'The agent sends no push notifications.',
    remedy: 'Stream the task or get it again.',
    a2a: ['PUSH_NOTIFICATION_NOT_SUPPORTED', -32_003, 400, 'FAILED_PRECONDITION'],
  },
  UNSUPPORTED_OPERATION: {
    meaning: 'The agent or the state of the task does not allow this operation.',
    remedy: 'Read the message; the agent card lists what the agent can do.',
    a2a: ['UNSUPPORTED_OPERATION', -32_004, 400, 'FAILED_PRECONDITION'],
  },
  ASSET_NOT_FOUND: {
    meaning: 'No asset has this id.',
    remedy: 'Check the digits; it may be minted later.',
    rest: 404,
    tool: true,
    gateway: {
      error: 'asset_not_found',
      status: 404,
      message: 'No asset has this id. Nothing was charged.',
      uncharged: true,
    },
  },
  AGENT_NOT_FOUND: {
    meaning: 'The registry has no agent with this id.',
    remedy: 'Check the digits.',
    rest: 404,
  },
  PASS_NOT_OFFERED: {
    meaning: 'This operator has not set up passes of this wallet.',
    remedy: 'Take the certificate as PDF or `vc+jwt` instead: `as=pdf` or `as=jwt`.',
    rest: 404,
  },
  NOT_FOUND: {
    meaning: 'The request names something that does not exist.',
    remedy: 'Check the id or the path.',
    graphql: 'NOT_FOUND',
    gateway: {
      error: 'not_found',
      status: 404,
      message: 'There is nothing at this path. Attestations are sold at POST /verify.',
    },
  },
  METHOD_NOT_FOUND: {
    meaning: 'A2A 1.0 has no such method or path here.',
    remedy: 'Use the methods that the agent card names.',
    a2a: ['METHOD_NOT_FOUND', -32_601, 404, 'NOT_FOUND'],
  },
  METHOD_NOT_ALLOWED: {
    meaning: 'This path does not answer this method; see the Allow header.',
    remedy: 'Use a method of the `Allow` header.',
    mcp: [-32_000, 405],
    a2a: ['METHOD_NOT_ALLOWED', -32_600, 405, 'UNIMPLEMENTED'],
    gateway: { error: 'method_not_allowed', status: 405 },
  },
  BODY_TOO_LARGE: {
    meaning: 'The body is larger than the limit.',
    remedy: 'Send at most 16 KiB to the gateway, at most 64 KiB elsewhere.',
    mcp: [-32_000, 413],
    a2a: ['BODY_TOO_LARGE', -32_600, 413, 'INVALID_ARGUMENT'],
    gateway: { error: 'body_too_large', status: 413, message: 'The body may have at most 16 KiB.' },
  },
  BODY_TOO_SLOW: {
    meaning: 'The body did not arrive in time.',
    remedy: 'Send it again.',
    rest: 408,
    a2a: ['BODY_TOO_SLOW', -32_600, 408, 'DEADLINE_EXCEEDED'],
    gateway: { error: 'body_too_slow', status: 408 },
  },
  RATE_LIMITED: {
    meaning: 'Your IP, or your API key, used up its window.',
    remedy: 'Wait `Retry-After` seconds.',
    rest: 429,
    graphql: 'RATE_LIMITED',
    mcp: [-32_000, 429],
    a2a: ['RATE_LIMITED', -32_000, 429, 'RESOURCE_EXHAUSTED'],
    gateway: { error: 'rate_limited', status: 429, message: 'Too many requests. Wait as long as Retry-After says.' },
  },
  TOO_COMPLEX: {
    meaning: 'The document is too deep, too long or too expensive, or it took too long.',
    remedy: 'Ask for fewer items or relations; narrow the filter.',
    graphql: 'TOO_COMPLEX',
  },
  DEADLINE_EXCEEDED: {
    meaning: 'The request took too long.',
    remedy: 'Ask again. GraphQL: the mutation may have been done; repeat it with the same `idempotencyKey`.',
    graphql: 'DEADLINE_EXCEEDED',
    mcp: [-32_603, 504],
  },
  INTERNAL: {
    meaning: 'The request failed unexpectedly: a fault of the service.',
    remedy:
      'Ask again; if it stays, report the time and `X-Request-Id` (GraphQL: `extensions.requestId`) to the operator.',
    rest: 500,
    tool: true,
    graphql: 'INTERNAL',
    a2a: ['INTERNAL_ERROR', -32_603, 500, 'INTERNAL'],
    gateway: { error: 'internal_error', status: 500, message: `The request failed unexpectedly. ${retryPayment}` },
  },
  CHAIN_UNAVAILABLE: {
    meaning: 'The chain could not be read; no answer is a guess.',
    remedy: 'Ask again in a few seconds, or read the chain yourself.',
    rest: 502,
    tool: true,
    graphql: 'CHAIN_UNAVAILABLE',
    gateway: {
      error: 'chain_unavailable',
      status: 502,
      message: `The asset could not be read from the chain. ${nothingCharged}`,
      uncharged: true,
    },
  },
  DATABASE_UNAVAILABLE: {
    meaning: 'The database does not answer, its disk is full, or it ended a statement by one of its limits.',
    remedy: 'Ask again after `Retry-After`. Operator: look at the database and the log.',
    rest: 503,
    tool: true,
    graphql: 'DATABASE_UNAVAILABLE',
    a2a: ['DATABASE_UNAVAILABLE', -32_603, 503, 'UNAVAILABLE'],
  },
  INDEX_INCOMPLETE: {
    meaning: 'The index is being filled, for the first time or again. It cannot say yet what does not exist.',
    remedy: 'Ask again in a few seconds; `_meta` says how far it is. Keyless reads answer meanwhile.',
    graphql: 'INDEX_INCOMPLETE',
  },
  HISTORY_UNAVAILABLE: {
    meaning:
      'The history of the item cannot be read whole: the index is behind, away, or does not lead to the present state. Or the date is after the newest block that is read.',
    remedy: 'Ask again after `Retry-After`. Operator: look at `touchstone index status`.',
    rest: 503,
  },
  KEY_STORE_UNAVAILABLE: {
    meaning: 'The token that holds the keys (PKCS#11) does not answer.',
    remedy: 'Ask again after `Retry-After`. Operator: look at the HSM, its network and the log.',
    rest: 503,
  },
  ...paymentErrors,
} as const satisfies Readonly<Record<string, ErrorRow>>

type Rows = typeof errorCodes
type Name = keyof Rows

/** Codes of the keyless read and of agent look-ups. */
export type RestCode = { [N in Name]: Rows[N] extends { rest: number } ? N : never }[Name]
export type GraphqlCode = { [N in Name]: Rows[N] extends { graphql: infer Code } ? Code : never }[Name]
/** Codes of a failed tool call of MCP and A2A. */
export type ToolCode = { [N in Name]: Rows[N] extends { tool: true } ? N : never }[Name]
export type McpRejection = { [N in Name]: Rows[N] extends { mcp: object } ? N : never }[Name]
export type A2aReason = {
  [N in Name]: Rows[N] extends { a2a: readonly [infer Reason, ...unknown[]] } ? Reason : never
}[Name]
export type GatewayCode = { [N in Name]: Rows[N] extends { gateway: { error: infer Code } } ? Code : never }[Name]

/** Every row with its name, typed alike: the columns that a row leaves out are undefined. */
export const errorRows: readonly (ErrorRow & { readonly name: string })[] = Object.entries<ErrorRow>(errorCodes).map(
  ([name, row]) => ({ name, ...row }),
)
