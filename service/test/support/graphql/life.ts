/** Steps of a product's life by GraphQL, for tests: registered, offered by its owner, answered by the recipient. */
import assert from 'node:assert/strict'
import { playgroundExamples } from '../../../src/graphql/playground/examples.ts'
import { alice, operator, type graphqlOf } from './client.ts'

export type Transfer = {
  id: string
  status: string
  txHash: string
  from: { address: string }
  to: { address: string }
}
export type Payload = { success: boolean; errors: { field: string; message: string }[]; txHash: string | null }
type Typed = Parameters<typeof operator.signTypedData>[0]

const fields =
  'success txHash errors { field message } transfer { id status txHash settledTxHash from { address } to { address } }'
export const initiated = `mutation ($input: TransferInput!) { initiateTransfer(input: $input) { ${fields} } }`
export const answered = (name: 'acceptTransfer' | 'cancelTransfer') =>
  `mutation ($input: TransferAnswerInput!) { ${name}(input: $input) { ${fields} } }`

/** The example of the playground; its variable is `productId`. */
export const transferred =
  playgroundExamples.find(({ query }) => query.includes('subscription ProductTransferred'))?.query ?? ''

export function lifeOf(graphql: Awaited<ReturnType<typeof graphqlOf>>) {
  async function register(tagId: string): Promise<string> {
    const { registerProduct } = await graphql.ask<{ registerProduct: Payload & { product: { id: string } | null } }>(
      'mutation ($input: RegisterProductInput!) { registerProduct(input: $input) { success txHash errors { field message } product { id } } }',
      { input: { tagId, name: `Product ${tagId}`, brand: 'Maison' } },
    )
    assert.ok(registerProduct.success, JSON.stringify(registerProduct))
    assert.match(registerProduct.txHash ?? '', /^0x[0-9a-f]{64}$/)
    return registerProduct.product?.id ?? ''
  }

  async function typedData(input: Readonly<Record<string, unknown>>): Promise<{ typedData: Typed; deadline: string }> {
    const { transferTypedData } = await graphql.ask<{
      transferTypedData: Payload & { typedData: Typed; deadline: string }
    }>(
      'query ($input: TransferTypedDataInput!) { transferTypedData(input: $input) { success errors { field message } typedData deadline } }',
      { input },
    )
    assert.ok(transferTypedData.success, JSON.stringify(transferTypedData.errors))
    return transferTypedData
  }

  async function offer(productId: string, by = operator, to = alice) {
    const step = { productId, toAddress: to.address, message: 'Enjoy it' }
    const { typedData: data, deadline } = await typedData(step)
    const signature = await by.signTypedData(data)
    const { initiateTransfer } = await graphql.ask<{ initiateTransfer: Payload & { transfer: Transfer | null } }>(
      initiated,
      { input: { ...step, deadline, signature } },
    )
    return { ...initiateTransfer, input: { ...step, deadline, signature } }
  }

  async function answer(name: 'acceptTransfer' | 'cancelTransfer', transferId: string, by: typeof operator) {
    const action = name === 'acceptTransfer' ? 'ACCEPT' : 'CANCEL'
    const signature = await by.signTypedData((await typedData({ action, transferId })).typedData)
    const data = await graphql.ask<Record<string, Payload & { transfer: Transfer | null }>>(answered(name), {
      input: { transferId, signature },
    })
    return data[name]
  }

  return { register, typedData, offer, answer }
}
