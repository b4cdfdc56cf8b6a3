/** A row of the table of error codes: what it means, and its code in each protocol that has it. */
export type ErrorRow = {
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
