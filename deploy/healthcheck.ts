/**
 * Checks that this process is healthy, for a container that has no curl. Its exit code is 0 when every host that it runs is healthy by its
 * `/health`, else 1. An indexer without hosts is checked by its metrics, where METRICS_PORT is set.
 */
const { ONLY = '', PAYMENT_PAY_TO = '', METRICS_PORT = '' } = process.env
const named = ONLY === '' ? ['verification', 'gateway', 'graphql'] : ONLY.split(',').map((name) => name.trim())
const ports: Readonly<Record<string, string>> = {
  verification: process.env['VERIFICATION_PORT'] ?? '8080',
  // A service with no address to pay has no gateway.
  ...(PAYMENT_PAY_TO !== '' && { gateway: process.env['GATEWAY_PORT'] ?? '8081' }),
  graphql: process.env['GRAPHQL_PORT'] ?? '8082',
}
const hosts = named.flatMap((name) => ports[name] ?? []).map((port) => `http://127.0.0.1:${port}/health`)
const asked = hosts.length > 0 || METRICS_PORT === '' ? hosts : [`http://127.0.0.1:${METRICS_PORT}/metrics`]
const answers = await Promise.all(
  asked.map((url) =>
    fetch(url, { signal: AbortSignal.timeout(4_000) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  ),
)
process.exit(answers.every(Boolean) ? 0 : 1)
