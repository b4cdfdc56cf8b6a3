/** The errors of A2A 1.0 (§3.3.2, §5.4) on both bindings: JSON-RPC codes, and `google.rpc.Status` for HTTP+JSON. */
import { errorRows, type A2aReason } from '../../lib/error-codes.ts'

/** The error of a request. `field` names the wrong parameter. The message holds no text of a caller or a supplier. */
export type Fault = { readonly fault: A2aReason; readonly message: string; readonly field?: string }

export function isFault(value: object): value is Fault {
  return 'fault' in value
}

export function invalid(field: string, message: string): Fault {
  return { fault: 'INVALID_PARAMS', message: `${field}: ${message}`, field }
}

export const noPushNotifications: Fault = {
  fault: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  message: 'This agent sends no push notifications.',
}

/** JSON-RPC code, HTTP status and canonical code by reason. */
const faults = Object.fromEntries(
  errorRows.flatMap(({ a2a }) => (a2a === undefined ? [] : [[a2a[0], a2a]])),
) as Readonly<Record<A2aReason, readonly [reason: string, jsonRpc: number, status: number, canonical: string]>>

/** A2A defines these, so that they have an `ErrorInfo`. The others belong to HTTP and JSON-RPC. */
const a2aReasons: ReadonlySet<A2aReason> = new Set<A2aReason>([
  'TASK_NOT_FOUND',
  'TASK_NOT_CANCELABLE',
  'PUSH_NOTIFICATION_NOT_SUPPORTED',
  'UNSUPPORTED_OPERATION',
  'CONTENT_TYPE_NOT_SUPPORTED',
  'VERSION_NOT_SUPPORTED',
  'INVALID_PARAMS',
])

export function httpStatusOf({ fault }: Fault): number {
  return faults[fault][2]
}

/** Returns the `error` member of a JSON-RPC response. */
export function toRpcError(fault: Fault): object {
  const details = detailsOf(fault)
  return { code: faults[fault.fault][1], message: fault.message, ...(details.length > 0 && { data: details }) }
}

export function toRestError(fault: Fault): object {
  const [, , code, status] = faults[fault.fault]
  return { error: { code, status, message: fault.message, details: detailsOf(fault) } }
}

function detailsOf({ fault, message, field }: Fault): object[] {
  const details: object[] = []
  if (a2aReasons.has(fault))
    details.push({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: fault, domain: 'a2a-protocol.org' })
  if (field !== undefined)
    details.push({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field, description: message }],
    })
  return details
}
