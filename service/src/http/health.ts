/** The body of `/health` on hosts that have no more to say than that they answer (spec §2.6, §4.7 give its form for the gateway). */

const runtime = `node/${process.versions.node.split('.')[0]}.x`

export function livenessBody(now = new Date()): string {
  return JSON.stringify({ status: 'ok', timestamp: now.toISOString(), runtime })
}
