/** Every protocol derives its error codes and statuses from this one table. `npm run docs` makes docs/error-codes.md from it. */
type ErrorRow = {
  /** A sentence for people. The gateway sends it as `message`. */
  readonly meaning: string
  readonly remedy: string
  /** HTTP status of the keyless read and of agent look-ups; `error.code` is the name of the row. */
  readonly rest?: number
  /** MCP and A2A return the code as the text of a failed tool call. */
  readonly tool?: true
  /** `extensions.code` of GraphQL. */
  readonly graphql?: string
  /** JSON-RPC code and HTTP status of a request that MCP rejects before a tool runs. */
  readonly mcp?: readonly [jsonRpc: number, status: number]
  /** `reason` of the `ErrorInfo`, JSON-RPC code, HTTP status and canonical code of A2A (§5.4). */
  readonly a2a?: readonly [reason: string, jsonRpc: number, status: number, canonical: string]
  /** `Retry-After` is in seconds, `message` replaces the meaning. `uncharged`: nothing was charged, so that it is safe to pay anew. */
  readonly gateway?: {
    readonly error: string
    readonly status: number
    readonly retryAfter?: number
    readonly message?: string
    readonly uncharged?: true
  }
}

const again = 'Retry with the same payment header.'
const uncharged = `Nothing was charged. ${again}`

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
    gateway: { error: 'internal_error', status: 500, message: `The request failed unexpectedly. ${again}` },
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
      message: `The asset could not be read from the chain. ${uncharged}`,
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
  PAYMENT_REQUIRED: {
    meaning: 'Payment is required. Sign one of the accepted payments and send it in the X-PAYMENT header.',
    remedy: 'Sign one of the accepted payments and send it.',
    gateway: { error: 'payment_required', status: 402 },
  },
  INVALID_PAYLOAD: {
    meaning: 'The payment header is not the base64 of a payment as this offer asks for.',
    remedy: 'Send the payment as standard base64 of JSON, in one header, at most 8,192 characters.',
    gateway: { error: 'invalid_payload', status: 402 },
  },
  INVALID_X402_VERSION: {
    meaning: 'X-PAYMENT takes x402Version 1, PAYMENT-SIGNATURE takes x402Version 2.',
    remedy: 'Send the version that belongs to the header.',
    gateway: { error: 'invalid_x402_version', status: 402 },
  },
  UNSUPPORTED_SCHEME: {
    meaning: 'The payment scheme is not one of this offer.',
    remedy: 'Pay with a scheme of the offer: `exact`, or `batch-settlement` where it is listed.',
    gateway: { error: 'unsupported_scheme', status: 402 },
  },
  INVALID_NETWORK: {
    meaning: 'The payment is for another network than the offer.',
    remedy: 'Pay on `base-sepolia` (`eip155:84532`).',
    gateway: { error: 'invalid_network', status: 402 },
  },
  INVALID_PAYMENT_REQUIREMENTS: {
    meaning: 'The accepted terms of the payment are not those of this offer.',
    remedy: 'Accept the terms of the newest 402; the price may have changed.',
    gateway: { error: 'invalid_payment_requirements', status: 402 },
  },
  RECIPIENT_MISMATCH: {
    meaning: 'The payment goes to another recipient than the offer.',
    remedy: 'Pay the `payTo` of the offer.',
    gateway: { error: 'recipient_mismatch', status: 402 },
  },
  AMOUNT_MISMATCH: {
    meaning: 'The payment must be exactly the amount of the offer.',
    remedy: 'Pay exactly the amount of the offer.',
    gateway: { error: 'amount_mismatch', status: 402 },
  },
  VOUCHER_AMOUNT_MISMATCH: {
    meaning: 'The voucher must be over the sum of the channel so far and the price. Nothing was charged.',
    remedy: 'Sign a voucher over `chargedCumulativeAmount` of the PAYMENT-REQUIRED header and the price.',
    gateway: { error: 'voucher_amount_mismatch', status: 402, uncharged: true },
  },
  DEPOSIT_TOO_SMALL: {
    meaning: 'The deposit into the channel is smaller than the offer asks for. Nothing was charged.',
    remedy: 'Deposit at least `minDeposit` of the offer.',
    gateway: { error: 'deposit_too_small', status: 402, uncharged: true },
  },
  INVALID_SIGNATURE: {
    meaning: 'The signature is not that of the payer over this authorization in the token’s domain.',
    remedy: 'Sign with the payer’s key, in the token’s domain (`extra` of the offer).',
    gateway: { error: 'invalid_signature', status: 402 },
  },
  AUTHORIZATION_EXPIRED: {
    meaning: 'The authorization has expired or is about to. Compare your clock with the Date header.',
    remedy: 'Sign a new authorization.',
    gateway: { error: 'authorization_expired', status: 402 },
  },
  AUTHORIZATION_NOT_YET_VALID: {
    meaning: 'The authorization is not yet valid. Compare your clock with the Date header.',
    remedy: 'Wait until `validAfter`, or sign anew.',
    gateway: { error: 'authorization_not_yet_valid', status: 402 },
  },
  AUTHORIZATION_VALID_TOO_LONG: {
    meaning: 'The authorization is valid for too long. Sign one whose validBefore is at most 3,630 seconds from now.',
    remedy:
      'Sign a new authorization: `validBefore` is now plus `maxTimeoutSeconds` of the offer, at most an hour more.',
    gateway: { error: 'authorization_valid_too_long', status: 402 },
  },
  INSUFFICIENT_FUNDS: {
    meaning: 'The payer does not hold enough of the payment token.',
    remedy: 'Put USDC into the payer’s account.',
    gateway: { error: 'insufficient_funds', status: 402 },
  },
  NONCE_ALREADY_USED: {
    meaning: 'The authorization’s nonce is already used or cancelled. Sign a new authorization.',
    remedy: 'Sign a new authorization with a new nonce.',
    gateway: { error: 'nonce_already_used', status: 402 },
  },
  PAYMENT_REJECTED: {
    meaning: 'The payment token rejects this transfer.',
    remedy: 'Use another payer: the token is paused, or an account is blocked.',
    gateway: { error: 'payment_rejected', status: 402 },
  },
  PAYER_BLOCKED: {
    meaning:
      'A transfer of this payer, or of its kind of wallet, has failed on the chain. Nothing was charged. Wait as long as Retry-After says.',
    remedy: 'Wait `Retry-After` seconds and sign a new authorization, or pay from another account.',
    gateway: { error: 'payer_blocked', status: 429, uncharged: true },
  },
  WALLET_FACTORY_NOT_ALLOWED: {
    meaning: 'The gateway does not deploy wallets of this factory (ERC-6492). Nothing was charged.',
    remedy: 'Deploy the wallet before it pays, or pay from another account. Operator: `FACILITATOR_WALLET_FACTORIES`.',
    gateway: { error: 'wallet_factory_not_allowed', status: 402, uncharged: true },
  },
  CHANNEL_UNDERFUNDED: {
    meaning: 'The deposit of the channel does not cover this voucher. No proof was sold.',
    remedy: 'Send a deposit of at least `minDeposit` of the offer together with the voucher.',
    gateway: { error: 'channel_underfunded', status: 402 },
  },
  PAYMENT_ALREADY_USED: {
    meaning: 'This payment has bought another request. Sign a new authorization.',
    remedy: 'Sign a new authorization for this asset.',
    gateway: { error: 'payment_already_used', status: 402 },
  },
  INVALID_PAYMENT_IDENTIFIER: {
    meaning: 'The payment identifier must have 16 to 128 letters, digits, hyphens or underscores.',
    remedy: 'Send `info.required` and a correct `info.id`, or leave the extension out.',
    gateway: { error: 'invalid_payment_identifier', status: 400 },
  },
  PAYMENT_IDENTIFIER_USED: {
    meaning: 'This payment identifier has bought another request. Nothing was charged.',
    remedy: 'Use one identifier for one request, and the same one only to repeat it.',
    gateway: { error: 'payment_identifier_used', status: 409, uncharged: true },
  },
  PAYMENT_UNAVAILABLE: {
    meaning: `Payments cannot be checked at the moment. ${uncharged}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at providers, facilitator and gas in `/health`.',
    gateway: { error: 'payment_unavailable', status: 503, retryAfter: 5, uncharged: true },
  },
  SIGNER_UNAVAILABLE: {
    meaning: `Attestations cannot be signed at the moment. ${uncharged}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at the attestation key.',
    gateway: { error: 'signer_unavailable', status: 503, retryAfter: 5, uncharged: true },
  },
  LEDGER_UNAVAILABLE: {
    meaning: `Payments cannot be recorded at the moment. ${again}`,
    remedy: 'Send the same header after `Retry-After`. Operator: look at the database.',
    gateway: { error: 'ledger_unavailable', status: 503, retryAfter: 5 },
  },
  KEYS_UNAVAILABLE: {
    meaning: 'The list of attestation keys cannot be read at the moment. Ask again.',
    remedy: 'Ask again after `Retry-After`. Operator: look at the database.',
    gateway: { error: 'keys_unavailable', status: 503, retryAfter: 5 },
  },
  NOT_READY: {
    meaning: `The gateway is not ready to sell. ${again} It is charged at most once.`,
    remedy: 'Send the same header after `Retry-After`. Operator: `checks` of `/health` says what is wrong.',
    gateway: { error: 'not_ready', status: 503, retryAfter: 60 },
  },
  SETTLEMENT_PENDING: {
    meaning: `The outcome of the payment is not known yet. ${again} It is charged at most once.`,
    remedy: 'Send the **same header** after `Retry-After`; never a new payment.',
    gateway: { error: 'settlement_pending', status: 503, retryAfter: 2 },
  },
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
