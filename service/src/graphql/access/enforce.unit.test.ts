/** The matrix of rights (spec §5). It runs each act of GraphQL under each scope: allowed or rejected as the table below says. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildSchema, GraphQLError, isObjectType } from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { graphqlSchema, type ResolverMap } from '../schema.ts'
import { enforceRights } from './enforce.ts'
import { rules } from './rules.ts'
import { type Scope, scopes, type Verb, verbs, verbsOf } from '../../access/rights.ts'

/** The verbs of the scopes from before there were verbs. */
const former: Readonly<Record<string, string>> = {
  read: 'read:products read:owners',
  write: 'mint bind activate claim transfer flag:lost flag:stolen flag:recall flag:tamper resolve recycle read:owners',
  taps: 'read:taps read:owners',
}

/** An act by its field and arguments, and the verbs that it needs. All words are needed, and one of those joined by `|`. */
const acts: readonly (readonly [field: string, args: object, needs: string])[] = [
  ['Query.product', { id: '1' }, 'read:products'],
  ['Query.products', {}, 'read:products'],
  ['Query.products', { filter: { brand: 'Acme', or: [{ verified: true }] } }, 'read:products'],
  ['Query.products', { filter: { owner: '0x' } }, 'read:products read:owners'],
  ['Query.products', { filter: { or: [{ not: { and: [{ owner: '0x' }] } }] } }, 'read:products read:owners'],
  ['Query.transfers', { filter: null }, 'read:products'],
  ['Query.transfers', { filter: { party: '0x' } }, 'read:products read:owners'],
  ['Query.transfer', { id: '1-1' }, 'read:products'],
  ['Query.events', {}, 'read:products'],
  ['Query.productStats', {}, 'read:products'],
  ['Query.node', { id: '1' }, 'read:products'],
  ['Query._meta', {}, 'read:products'],
  ['Query.transferTypedData', { input: { action: 'INITIATE' } }, 'transfer|read:owners'],
  ['Query.transferTypedData', { input: { action: 'ACCEPT' } }, 'transfer|read:owners'],
  ['Query.transferTypedData', { input: { action: 'CANCEL' } }, 'transfer|read:owners'],
  ['Query.transferTypedData', { input: { action: 'CLAIM' } }, 'claim|read:owners'],
  ['Query.transferTypedData', { input: { action: 'RECYCLE' } }, 'recycle|read:owners'],
  ['Query.transferTypedData', { input: { action: 'INVALIDATE' } }, 'transfer|read:owners'],
  ['Query.taps', {}, 'read:taps'],
  ['Query.tapAnomalies', {}, 'read:taps'],
  ['Query.approval', { id: 'k3x9a0qz12ab' }, 'approve|recycle'],
  ['Query.approvals', {}, 'approve|recycle'],
  ['Mutation.registerProduct', { input: {} }, 'mint'],
  ['Mutation.initiateTransfer', { input: {} }, 'transfer'],
  ['Mutation.acceptTransfer', { input: {} }, 'transfer'],
  ['Mutation.cancelTransfer', { input: {} }, 'transfer'],
  ['Mutation.invalidateNonce', { input: {} }, 'transfer'],
  ['Mutation.bindTag', { input: {} }, 'bind'],
  ['Mutation.activateProduct', { input: {} }, 'activate'],
  ['Mutation.claimProduct', { input: {} }, 'claim'],
  ['Mutation.flagProduct', { input: { reports: ['LOST'] } }, 'flag:lost'],
  ['Mutation.flagProduct', { input: { reports: ['STOLEN'] } }, 'flag:stolen'],
  ['Mutation.flagProduct', { input: { reports: ['STOLEN_CONFIRMED'] } }, 'flag:stolen'],
  ['Mutation.flagProduct', { input: { reports: ['RECALL'] } }, 'flag:recall'],
  ['Mutation.flagProduct', { input: { reports: ['INVESTIGATION'] } }, 'flag:recall'],
  ['Mutation.flagProduct', { input: { reports: ['TAMPER'] } }, 'flag:tamper'],
  ['Mutation.flagProduct', { input: { reports: ['LOST', 'RECALL'] } }, 'flag:lost flag:recall'],
  ['Mutation.flagProduct', { input: { reports: [] } }, 'flag:lost|flag:stolen|flag:recall|flag:tamper'],
  ['Mutation.resolveProduct', { input: {} }, 'resolve'],
  ['Mutation.recycleProduct', { input: {} }, 'recycle'],
  ['Mutation.announceRecycle', { input: {} }, 'recycle'],
  ['Mutation.approveRequest', { input: {} }, 'approve'],
  ['Mutation.rejectRequest', { input: {} }, 'approve|recycle'],
  ['Subscription.events', {}, 'read:products'],
  ['Subscription.productTransferred', {}, 'read:products'],
  ['Subscription.productVerified', {}, 'read:products'],
  ['Product.currentOwner', {}, 'read:owners'],
  ['Product.taps', {}, 'read:taps'],
  ['Transfer.from', {}, 'read:owners'],
  ['Transfer.to', {}, 'read:owners'],
  ['HistoryEvent.actor', {}, 'read:owners'],
  ['HistoryEvent.from', {}, 'read:owners'],
  ['HistoryEvent.to', {}, 'read:owners'],
]

/** Every field with a rule answers that it was reached. */
const reached = Object.freeze({ success: true })
const resolvers: Record<string, ResolverMap[string]> = {}
for (const name of Object.keys(rules)) {
  const [type = '', field = ''] = name.split('.')
  const resolve = () => reached
  resolvers[type] = { ...resolvers[type], [field]: type === 'Subscription' ? { subscribe: resolve, resolve } : resolve }
}
const schema = graphqlSchema(resolvers)

async function isAllowed(name: string, args: object, given: readonly Scope[]): Promise<boolean> {
  const [typeName = '', fieldName = ''] = name.split('.')
  const type = schema.getType(typeName)
  const field = isObjectType(type) ? type.getFields()[fieldName] : undefined
  const resolve = field?.subscribe ?? field?.resolve
  assert.ok(resolve, name)
  const key = { id: 'testtest', name: 'test', scopes: given, brands: null }
  const noteRefusal = async () => {}
  const context = { key, verbs: new Set(verbsOf(given)), noteRefusal, loaders: {} } as unknown as GraphqlContext
  try {
    assert.equal(await resolve({}, args, context, {} as never), reached)
    return true
  } catch (error) {
    assert.ok(error instanceof GraphQLError, String(error))
    assert.equal(error.extensions['code'], 'FORBIDDEN')
    assert.match(error.message, /^This API key lacks the scope [a-z:| ]+\. Make one with: touchstone key create$/)
    return false
  }
}

describe('the rights of API keys', () => {
  for (const [name, args, needs] of acts)
    it(`${name} ${JSON.stringify(args)} takes ${needs}`, async () => {
      const need = needs.split(' ').map((one) => one.split('|'))
      for (const scope of scopes) {
        const own = (former[scope] ?? scope).split(' ')
        const wanted = need.every((one) => one.some((verb) => own.includes(verb)))
        assert.equal(await isAllowed(name, args, [scope]), wanted, scope)
      }
      const some = need.map(([verb]) => verb as Verb)
      assert.equal(await isAllowed(name, args, some), true, some.join(' '))
      assert.equal(await isAllowed(name, args, []), false, 'no scope')
      assert.equal(await isAllowed(name, args, verbs), true, 'all verbs')
    })

  it('are tried here for every rule', () => {
    const tried = new Set(acts.map(([name]) => name))
    const untried = Object.keys(rules).filter((name) => !tried.has(name))
    assert.deepEqual(untried, [], 'rules of access/rules.ts that need a line in `acts` of this file')
  })

  it('are demanded of every field that an operation can begin with', () => {
    for (const type of ['Query', 'Mutation', 'Subscription'])
      assert.throws(
        () => enforceRights(buildSchema(`schema { ${type.toLowerCase()}: ${type} } type ${type} { secrets: Int }`)),
        new Error(`${type}.secrets has no rule of access.`),
      )
  })

  it('are noted in the audit trail with the id of what was refused, and no other text of the caller', async () => {
    const account = `0x${'ab'.repeat(20)}`
    const texts = ['7', '7-1', 'k3x9a0qz12ab', account, '\u001b[2J', '7\u202e', 'x'.repeat(500)]
    const noted: string[] = []
    for (const productId of texts) {
      const field = schema.getMutationType()?.getFields()['activateProduct']
      const noteRefusal = async ({ subject }: { subject: string }) => noted.push(subject)
      const context = { verbs: new Set(), noteRefusal, loaders: {} }
      await assert.rejects(async () => field?.resolve?.({}, { input: { productId } }, context, {} as never))
    }
    assert.deepEqual(noted, ['7', '7-1', 'k3x9a0qz12ab', '', '', '', ''])
  })

  it('leave to the audit trail only refusals that have no entry yet', async () => {
    const errors = [{ field: 'productId', message: 'It is not there.' }]
    const notedOf = async (field: string, payload: object) => {
      const noted: string[] = []
      const noteRefusal = async ({ because }: { because: string }) => noted.push(because)
      const context = { verbs: new Set(verbs), key: { brands: null }, noteRefusal, loaders: {} }
      const mutations = graphqlSchema({ Mutation: { [field]: () => payload } }).getMutationType()
      await mutations?.getFields()[field]?.resolve?.({}, {}, context, {} as never)
      return noted
    }
    assert.deepEqual(await notedOf('activateProduct', { success: false, errors }), ['productId: It is not there.'])
    assert.deepEqual(await notedOf('activateProduct', { success: true, errors: [] }), [])
    assert.deepEqual(await notedOf('activateProduct', { success: false, errors, txHash: '0x01' }), [])
    assert.deepEqual(await notedOf('recycleProduct', { success: false, errors, approval: { status: 'PENDING' } }), [])
    assert.deepEqual(await notedOf('approveRequest', { success: false, errors }), [])
  })

  it('are described in the schema with the verbs that they take', () => {
    for (const [name, { needs }] of Object.entries(rules)) {
      const field = schema.getMutationType()?.getFields()[name.replace('Mutation.', '')]
      for (const verb of field === undefined ? [] : needs({}).flat())
        assert.ok(field?.description?.includes(`\`${verb}\``), `${name}: ${verb}`)
    }
  })

  it('cover every field whose type is an owner, but the service itself', () => {
    const owners = Object.values(schema.getTypeMap()).flatMap((type) =>
      isObjectType(type)
        ? Object.values(type.getFields()).flatMap((field) =>
            /^Owner!?$/.test(String(field.type)) ? [`${type.name}.${field.name}`] : [],
          )
        : [],
    )
    const free = owners.filter((name) => !rules[name]?.needs({}).some((need) => need.includes('read:owners')))
    assert.deepEqual(free, ['ProductVerifiedEvent.verifiedBy', 'Event.verifiedBy'])
  })
})
