/** The tabs of the playground at a first visit (spec §4.9, §6). They work on the products of `npm start`. */

/** One tab of GraphiQL, named after its operation. `variables` is JSON text. */
export type PlaygroundExample = { readonly query: string; readonly variables?: string }

export const playgroundExamples: readonly PlaygroundExample[] = [
  {
    query: `# The newest products, one page of them. Ctrl-Enter runs it, Ctrl-Space completes.
query Products($filter: ProductFilter, $first: Int, $after: String) {
  products(filter: $filter, first: $first, after: $after) {
    totalCount
    pageInfo { hasNextPage endCursor }
    edges {
      node {
        id
        name
        brand
        state
        verified
        flagged
        currentOwner { address }
      }
    }
  }
}
`,
    variables: json({ filter: { brand: 'Calder & Wick' }, first: 10 }),
  },
  {
    query: `# One product by its token id, with its metadata and its life.
query ProductWithTransfers($id: ID!) {
  product(id: $id) {
    id
    tagId
    name
    brand
    serialNumber
    state
    verified
    metadata { description origin imageUrl manufactureDate customFields }
    currentOwner { address }
    transfers {
      id
      status
      timestamp
      from { address }
      to { address }
      txHash
    }
    history(first: 20) {
      edges { node { type timestamp fromState toState txHash } }
    }
    chainRef { blockNumber blockHash }
  }
}
`,
    variables: json({ id: '5' }),
  },
  {
    query: `# Transfers of all products, the newest first; \`status\` may be PENDING, CONFIRMED or FAILED.
query Transfers($productId: ID, $status: TransferStatus, $first: Int) {
  transfers(productId: $productId, status: $status, first: $first) {
    totalCount
    edges {
      node {
        id
        status
        timestamp
        expiresAt
        from { address }
        to { address }
        product { id name }
      }
    }
  }
}
`,
    variables: json({ first: 20 }),
  },
  {
    query: `# Mints a token, so the key needs the scope \`write\`. The same idempotencyKey gives the same product again.
mutation RegisterProduct($input: RegisterProductInput!) {
  registerProduct(input: $input) {
    success
    txHash
    errors { field message }
    product { id tagId name state }
  }
}
`,
    variables: json({
      input: {
        tagId: 'playground-1',
        name: 'Playground Watch',
        brand: 'Calder & Wick',
        metadata: {
          description: 'Registered from the playground.',
          origin: 'CH',
          manufactureDate: '2026-03-01',
          customFields: { strap: 'olive' },
        },
        idempotencyKey: 'playground-1',
      },
    }),
  },
  {
    query: `# Runs until it is stopped. Open one of the tap links that \`npm start\` printed and see it arrive.
subscription ProductVerified {
  productVerified {
    verifiedAt
    verifiedBy { address }
    product { id tagId name verified }
  }
}
`,
  },
  {
    query: `# Runs until it is stopped: every step of a transfer of this product.
subscription ProductTransferred($productId: ID!) {
  productTransferred(productId: $productId) {
    transfer {
      id
      status
      timestamp
      from { address }
      to { address }
    }
    product {
      id
      name
      currentOwner { address }
    }
  }
}
`,
    variables: json({ productId: '5' }),
  },
]

function json(variables: object): string {
  return JSON.stringify(variables, null, 2)
}
