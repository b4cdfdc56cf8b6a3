/** The errors of A2A 1.0 (§3.3.2, §5.4) on both bindings: JSON-RPC codes, and `google.rpc.Status` for HTTP+JSON. */

/** The code in JSON-RPC, the HTTP status and the canonical code of Google's APIs. */
const faults = {
  TASK_NOT_FOUND: [-32_001, 404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [-32_002, 400, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32_003, 400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [-32_004, 400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32_005, 400, 'INVALID_ARGUMENT'],
  VERSION_NOT_SUPPORTED: [-32_009, 400, 'FAILED_PRECONDITION'],
  INVALID_PARAMS: [-32_602, 400, 'INVALID_ARGUMENT'],
  PARSE_ERROR: [-32_700, 400, 'INVALID_ARGUMENT'],
  INVALID_REQUEST: [-32_600, 400, 'INVALID_ARGUMENT'],
  METHOD_NOT_FOUND: [-32_601, 404, 'NOT_FOUND'],
  METHOD_NOT_ALLOWED: [-32_600, 405, 'UNIMPLEMENTED'],
  BODY_TOO_LARGE: [-32_600, 413, 'INVALID_ARGUMENT'],
  BODY_TOO_SLOW: [-32_600, 408, 'DEADLINE_EXCEEDED'],
  RATE_LIMITED: [-32_000, 429, 'RESOURCE_EXHAUSTED'],
  INTERNAL_ERROR: [-32_603, 500, 'INTERNAL'],
} as const

/** Those of HTTP and of JSON-RPC itself have no `ErrorInfo`: A2A does not name them. */
const a2aOwn: ReadonlySet<string> = new Set<keyof typeof faults>([
  'TASK_NOT_FOUND',
  'TASK_NOT_CANCELABLE',
  'PUSH_NOTIFICATION_NOT_SUPPORTED',
  'UNSUPPORTED_OPERATION',
  'CONTENT_TYPE_NOT_SUPPORTED',
  'VERSION_NOT_SUPPORTED',
  'INVALID_PARAMS',
])

/** Why a request is not done. `field`: which parameter is wrong. The message holds nothing that a caller or a supplier wrote. */
export type Fault = { readonly fault: keyof typeof faults; readonly message: string; readonly field?: string }

export function isFault(value: object): value is Fault {
  return 'fault' in value
}

export function invalid(field: string, message: string): Fault {
  return { fault: 'INVALID_PARAMS', message: `${field}: ${message}`, field }
}

export function httpStatusOf({ fault }: Fault): number {
  return faults[fault][1]
}

/** The `error` member of a JSON-RPC answer. */
export function rpcErrorOf(fault: Fault): object {
  const details = detailsOf(fault)
  return { code: faults[fault.fault][0], message: fault.message, ...(details.length > 0 && { data: details }) }
}

/** The body of an HTTP+JSON error. */
export function restErrorOf(fault: Fault): object {
  const [, code, status] = faults[fault.fault]
  return { error: { code, status, message: fault.message, details: detailsOf(fault) } }
}

function detailsOf({ fault, message, field }: Fault): object[] {
  const details: object[] = []
  if (a2aOwn.has(fault))
    details.push({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: fault, domain: 'a2a-protocol.org' })
  if (field !== undefined)
    details.push({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field, description: message }],
    })
  return details
}
