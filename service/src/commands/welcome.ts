/** What a stranger sees after `npm start`: every demo product with a link, and commands to copy. */

export type WelcomeItem = {
  readonly tokenId: bigint
  readonly state: string
  readonly name: string
  /** Of its demo tag. */
  readonly uid: Uint8Array | undefined
}

export function welcome({
  items,
  baseUrl,
  rpcUrl,
  contract,
  codeHash,
  dataDir,
}: {
  readonly items: readonly WelcomeItem[]
  readonly baseUrl: string
  readonly rpcUrl: string
  readonly contract: string
  readonly codeHash: string
  readonly dataDir: string
}): string {
  const width = Math.max(...items.map(({ name }) => name.length), 0)
  const rows = items.map(({ tokenId, state, name }) => {
    return `  ${state.padEnd(9)}  ${name.padEnd(width)}  ${baseUrl}/api/asset/${tokenId}`
  })
  const example = items.find(({ state }) => state === 'CLAIMED')?.tokenId ?? 1n
  return `
Touchstone runs. Verdicts of the demo products:

${rows.join('\n')}

Try these in another terminal:

  curl ${baseUrl}/api/asset/${example}
  npx touchstone verify ${baseUrl}/api/asset/${example} --rpc ${rpcUrl}
  npx touchstone verify ${example} --rpc ${rpcUrl} --prove --code-hash ${codeHash}

  chain      ${rpcUrl} (id 84532)   registry ${contract}
  data       ${dataDir}
  end        Ctrl-C
`
}
