/** What a stranger sees after `npm start`: every demo product with its links, and commands to copy. */

export type WelcomeItem = {
  readonly tokenId: bigint
  readonly state: string
  readonly name: string
  /** A fresh tap of its software tag, good for one use and five minutes after it. */
  readonly tap: string | null
}

export function welcome({
  items,
  urls,
  apiKey,
  rpcUrl,
  contract,
  codeHash,
  dataDir,
}: {
  readonly items: readonly WelcomeItem[]
  readonly urls: Readonly<Record<'verification' | 'gateway' | 'graphql', string>>
  /** For the playground and the GraphQL host, until the next start. */
  readonly apiKey: string
  readonly rpcUrl: string
  readonly contract: string
  readonly codeHash: string
  readonly dataDir: string
}): string {
  const baseUrl = urls.verification
  const rows = items.map(({ tokenId, state, name, tap }) => {
    const links = [`${baseUrl}/api/asset/${tokenId}`, ...(tap === null ? [] : [tap])]
    return `  ${state.padEnd(9)} ${name}\n${links.map((link) => `            ${link}`).join('\n')}`
  })
  const example = items.find(({ state }) => state === 'CLAIMED')?.tokenId ?? 1n
  return `
Touchstone runs: ${baseUrl}

The demo products, each with its keyless verdict and, where it carries a tag, the link that a tap on it opens:

${rows.join('\n')}

Try these in another terminal:

  curl ${baseUrl}/api/asset/${example}
  npx touchstone verify ${baseUrl}/api/asset/${example} --rpc ${rpcUrl}
  npx touchstone verify ${example} --rpc ${rpcUrl} --prove --code-hash ${codeHash}
  curl "$(npx touchstone tag emulate --tap)"
  npx touchstone pay ${example} --gateway ${urls.gateway}
  curl ${urls.graphql}/graphql -H 'Authorization: Bearer ${apiKey}' -H 'Content-Type: application/json' -d '{"query":"{ products(first: 3) { totalCount edges { node { id name state } } } }"}'

  docs       ${urls.verification}/docs
  playground ${urls.graphql}/playground   with the key ${apiKey}
  gateway    ${urls.gateway}/health

  chain      ${rpcUrl} (id 84532)   registry ${contract}
  data       ${dataDir}
  end        Ctrl-C
`
}
