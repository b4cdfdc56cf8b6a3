/** The fields of Transfer (spec §2.9), from its row in the index. */
import { cleanText } from '@touchstone/verdict'
import type { TransferRow } from '../store/transfers.ts'
import type { GraphqlContext } from './context.ts'
import { ownerOf } from './owner.ts'
import type { ResolverMap } from './resolvers.ts'

const longestMessage = 4_000

export const transferFields: ResolverMap = {
  Transfer: {
    from: ({ from }: TransferRow) => ownerOf(from) ?? nobody,
    to: ({ to }: TransferRow) => ownerOf(to) ?? nobody,
    timestamp: ({ initiatedAt }: TransferRow) => initiatedAt,
    txHash: ({ initiatedTx }: TransferRow) => initiatedTx,
    settledTxHash: ({ settledTx }: TransferRow) => settledTx,
    product: ({ tokenId }: TransferRow, _args: unknown, { loaders }: GraphqlContext) =>
      loaders.productByToken.load(tokenId),
    async message({ messageHash }: TransferRow, _args: unknown, { loaders }: GraphqlContext) {
      const text = messageHash === null ? null : await loaders.message.load(messageHash)
      return text === null ? null : cleanText(text, { max: longestMessage, multiline: true }) || null
    },
  },
}

const nobody = { address: `0x${'0'.repeat(40)}`, displayName: null, verifiedAt: null }
