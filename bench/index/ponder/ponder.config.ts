/** Configures Ponder for one contract on one chain, from the address that `npm run bench:index` gives. */
import { createConfig } from 'ponder'
import { parseAbi } from 'viem'

const abi = parseAbi([
  'event AssetMinted(uint256 indexed tokenId, address indexed to, bytes32 metadata)',
  'event TagBound(uint256 indexed tokenId, bytes32 indexed tagHash)',
  'event StateChanged(uint256 indexed tokenId, uint8 from, uint8 to, address actor)',
  'event AssetResold(uint256 indexed tokenId, address indexed from, address indexed to)',
  'event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)',
  'event FlagsChanged(uint256 indexed tokenId, uint8 flags, address actor, bytes32 reasonHash)',
  'event MetadataHashSet(uint256 indexed tokenId, bytes32 metadataHash)',
  'event TransferInitiated(uint256 indexed tokenId, address indexed from, address indexed to, uint64 expiry, uint32 nonce, bytes32 messageHash)',
  'event TransferCancelled(uint256 indexed tokenId, uint32 nonce, address actor)',
])

// oxlint-disable-next-line import/no-default-export -- Ponder reads it so
export default createConfig({
  // 100 ms is the shortest that Ponder takes.
  chains: { registry: { id: 84532, rpc: process.env.BENCH_RPC_URL, pollingInterval: 100 } },
  contracts: {
    Registry: { chain: 'registry', abi, address: process.env.BENCH_CONTRACT as `0x${string}`, startBlock: 0 },
  },
})
