/** GET {gateway_url}/health (spec §2.6, §4.7): always 200, from the last self-check, so that asking costs nothing. */
import { checksumAddress } from '@touchstone/verdict'
import type { AttestationKey } from './attest.ts'
import type { SelfCheck } from './self-check.ts'

const runtime = `node/${process.versions.node.split('.')[0]}.x`

export function healthBody(selfCheck: Pick<SelfCheck, 'results' | 'ready'>, key: () => AttestationKey): string {
  const results = [...selfCheck.results()]
  const degraded = results.some(([, { state }]) => state !== 'ok')
  return JSON.stringify({
    status: selfCheck.ready() ? (degraded ? 'degraded' : 'ok') : 'not_ready',
    timestamp: new Date().toISOString(),
    runtime,
    attestation_signer: checksumAddress(key().address),
    checks: Object.fromEntries(results.map(([name, { state, message }]) => [name, { ok: state === 'ok', message }])),
  })
}
