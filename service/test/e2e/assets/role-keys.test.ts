/** One key for each role. Each transaction comes from the key of its role, and `touchstone chain roles` says what a key lacks. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { publishedAccounts, publishedKey } from '../../../src/domain/published-accounts.ts'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { localRpc, transact } from '../../../src/chain/devchain/transact.ts'
import type { WriteRequest } from '../../../src/chain/transactions/calls.ts'
import { hash } from '../../support/index/writer-world.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { deployVersion1 } from '../../support/version-1.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'

const accounts = publishedAccounts(9)
const addressOf = (index: number): Hex => accounts[index]?.address ?? '0x'
/** The accounts 2 to 8, in this order; account 0 deployed the contract and is its admin. */
const roles = ['issuer', 'binder', 'qa', 'guardian', 'recycler', 'relayer', 'attester'] as const
const accountOf = (role: (typeof roles)[number]) => addressOf(2 + roles.indexOf(role))
const env = Object.fromEntries(roles.map((role, index) => [`${role.toUpperCase()}_KEY`, publishedKey(2 + index)]))

type Shown = {
  version: number
  complete: boolean
  roles: { role: string; id: Hex; holders: Hex[] }[]
  keys: { role: string; key: string; address: Hex; holds: string[] }[]
  shared: string[][]
  missing: { role: string; what: string; address: Hex | null; remedy: string }[]
}

for (const version of [2, 1])
  describe(`keys for each role on version ${version} of the contract`, () => {
    // The chain exists before the service, which finds whichever version stands there.
    const onChain = version === 1 ? { onChain: deployVersion1 } : {}
    const world = useOpened(() => startWorld({ env: { ...env, OPERATOR_KEY: '' }, ...onChain }))
    const shown = async (exit: number): Promise<Shown> => {
      const ran = await commandsOf(world)('chain', 'roles', '--json')
      assert.equal(ran.exit, exit, ran.err + ran.out)
      return JSON.parse(ran.out) as Shown
    }
    const nonces = async () =>
      Object.fromEntries(
        await Promise.all(
          roles.map(async (role) => [
            role,
            Number(await world.rpc('eth_getTransactionCount', [accountOf(role), 'latest'])),
          ]),
        ),
      ) as Record<(typeof roles)[number], number>

    it('names the roles that the keys lack, and the commands that give them', async () => {
      const found = await shown(1)
      assert.deepEqual([found.version, found.complete, found.shared], [version, true, []])
      assert.deepEqual(
        found.missing.map(({ role, what }) => `${role} ${what}`),
        [
          'issuer ISSUER_ROLE',
          'binder BINDER_ROLE',
          'qa QA_ROLE',
          'guardian GUARDIAN_ROLE',
          'recycler RECYCLER_ROLE',
          'recycler GUARDIAN_ROLE (for reported items)',
          'attester ATTESTER_ROLE',
        ],
      )
      const admin = found.roles.find(({ role }) => role === 'DEFAULT_ADMIN_ROLE')
      assert.deepEqual(admin?.holders, [addressOf(0)])
      const result = await world.components.writer.write(
        { kind: 'mint', to: addressOf(0), metadataHash: hash(0) },
        { idempotencyKey: 'before' },
      )
      assert.equal(!result.ok && result.code, 'ROLE_MISSING')
      const table = await commandsOf(world)('chain', 'roles')
      assert.match(table.out, /^ISSUER_ROLE +0x[0-9a-fA-F]{40}$/m)
      assert.match(
        table.out,
        /^missing +qa: QA_ROLE\. The admin runs: cast send 0x\w{40} "grantRole\(bytes32,address\)" 0x/m,
      )
    })

    it('has nothing missing once the admin has run them', async () => {
      const { missing } = await shown(1)
      for (const { remedy } of missing) {
        const [, to, role, account] = /cast send (0x\w+) ".*" (0x\w{64}) (0x\w{40}) /.exec(remedy) ?? []
        const data = encodeFunctionData({ abi, functionName: 'grantRole', args: [role as Hex, account as Hex] })
        await transact(localRpc(world.chainUrl), 'a role', { from: addressOf(0), to: to as Hex, data })
      }
      const found = await shown(0)
      assert.deepEqual(found.missing, [])
      assert.deepEqual(
        found.keys.map(({ role, key, address }) => [role, key, address]),
        roles.map((role) => [role, `${role.toUpperCase()}_KEY`, accountOf(role)]),
      )
      const issuers = found.roles.find(({ role }) => role === 'ISSUER_ROLE')?.holders ?? []
      assert.deepEqual(new Set(issuers), new Set([addressOf(0), accountOf('issuer')]))
      assert.match((await commandsOf(world)('chain', 'roles')).out, /Nothing is missing\.$/)
    })

    it('sends each step by the key of its role, with its own nonces', async () => {
      const sent = await nonces()
      const { writer } = world.components
      const write = async (request: WriteRequest, key: string) => {
        const result = await writer.write(request, { idempotencyKey: key })
        assert.ok(result.ok && result.status === 'CONFIRMED', result.ok ? result.status : result.message)
        const { from } = (await world.rpc('eth_getTransactionByHash', [result.txHash])) as { from: Hex }
        return { from, tokenIds: result.tokenIds }
      }
      const issuer = accountOf('issuer')
      const many = { kind: 'mintBatch', to: issuer, metadataHashes: Array.from({ length: 8 }, () => hash(0)) } as const
      const { from, tokenIds } = await write(many, 'mint')
      assert.equal(from, issuer.toLowerCase())
      // All products at the same time, each step after the one before: the keys have nonces of their own.
      const steps = async (tokenId: bigint) => {
        const tagHash = hash(Number(tokenId) + 1_000)
        const reasonHash = hash(0)
        const requests: readonly (readonly [(typeof roles)[number], WriteRequest])[] = [
          ['binder', { kind: 'bindTag', tokenId, tagHash }],
          ['qa', { kind: 'activate', tokenId }],
          ['attester', { kind: 'flag', tokenId, bits: 0x20, reasonHash }],
          ['guardian', { kind: 'flag', tokenId, bits: 1, reasonHash }],
          ['recycler', { kind: 'recycle', tokenId }],
        ]
        for (const [role, request] of requests) {
          const done = await write(request, `${role} ${request.kind} ${tokenId}`)
          assert.equal(done.from, accountOf(role).toLowerCase(), `${role} ${request.kind}`)
        }
      }
      await Promise.all(tokenIds.map(steps))
      const now = await nonces()
      assert.deepEqual(
        roles.map((role) => now[role] - sent[role]),
        [1, 8, 8, 8, 8, 0, 8],
      )
    })
  })

describe('a service whose roles share a key', () => {
  it('says at its start which roles these are', async () => {
    const own = { OPERATOR_KEY: '11'.repeat(32), QA_KEY: '22'.repeat(32), ATTESTER_KEY: '', DEMO: 'off' }
    const world = await startWorld({ env: own })
    try {
      const warnings = world.lines.filter((line) => line.includes('roles share a key'))
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', /"roles":"issuer, binder, guardian, recycler, relayer"/)
      const ran = await commandsOf(world)('chain', 'roles')
      assert.match(ran.out, /^One key is issuer, binder, guardian, recycler, relayer: /m)
      assert.match(ran.out, /^missing +attester: key\. Set ATTESTER_KEY/m)
      assert.match(ran.out, /^missing +issuer: ether\. Send some to 0x/m)
      assert.ok(!ran.out.includes('11'.repeat(32)))
    } finally {
      await world.end()
    }
  })
})
