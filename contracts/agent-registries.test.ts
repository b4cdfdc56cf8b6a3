/**
 * The agent registries of the local chain speak as the published ones of ERC-8004 do. The signatures and their hashes are those of
 * the ABIs published with the deployment on Base Sepolia (erc-8004-contracts, commit b9e466c, 2026-08-15).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parseAbiItem, toEventSelector, toFunctionSelector, type Abi } from 'viem'
import { identityAbi, reputationAbi } from '../service/src/agents/erc8004/reads.ts'
import type { Artifact } from './solidity.ts'

const published = {
  AgentIdentity: {
    'function ownerOf(uint256 tokenId) view returns (address)': '0x6352211e',
    'function tokenURI(uint256 tokenId) view returns (string)': '0xc87b56dd',
    'function getAgentWallet(uint256 agentId) view returns (address)': '0x00339509',
    'function register() returns (uint256 agentId)': '0x1aa3a008',
    'function register(string agentURI) returns (uint256 agentId)': '0xf2c298be',
    'function setAgentURI(uint256 agentId, string newURI)': '0x0af28bd3',
    'function unsetAgentWallet(uint256 agentId)': '0x3fddcf19',
    'function transferFrom(address from, address to, uint256 tokenId)': '0x23b872dd',
    'function supportsInterface(bytes4 interfaceId) view returns (bool)': '0x01ffc9a7',
    'error ERC721NonexistentToken(uint256 tokenId)': '0x7e273289',
    'event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)':
      '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    'event Registered(uint256 indexed agentId, string agentURI, address indexed owner)':
      '0xca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a',
    'event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy)':
      '0x3a2c7fffc2cba7582c690e3b82c453ea02a308326a98a3ad7576c606336409fb',
    'event MetadataSet(uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue)':
      '0x2c149ed548c6d2993cd73efe187df6eccabe4538091b33adbd25fafdb8a1468b',
  },
  AgentReputation: {
    'function getIdentityRegistry() view returns (address)': '0xbc4d861b',
    'function getClients(uint256 agentId) view returns (address[])': '0x42dd519c',
    'function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)': '0xf2d81759',
    'function getSummary(uint256 agentId, address[] clientAddresses, string tag1, string tag2) view returns (uint64 count, int128 summaryValue, uint8 summaryValueDecimals)':
      '0x81bbba58',
    'function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex) view returns (int128 value, uint8 valueDecimals, string tag1, string tag2, bool isRevoked)':
      '0x232b0810',
    'function giveFeedback(uint256 agentId, int128 value, uint8 valueDecimals, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)':
      '0x3c036a7e',
    'function revokeFeedback(uint256 agentId, uint64 feedbackIndex)': '0x4ab3ca99',
    'event NewFeedback(uint256 indexed agentId, address indexed clientAddress, uint64 feedbackIndex, int128 value, uint8 valueDecimals, string indexed indexedTag1, string tag1, string tag2, string endpoint, string feedbackURI, bytes32 feedbackHash)':
      '0x6a4a61743519c9d648a14e6493f47dbe3ff1aa29e7785c96c8326a205e58febc',
    'event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex)':
      '0x25156fd3288212246d8b008d5921fde376c71ed14ac2e072a506eb06fde6d09d',
  },
} as const

const read = { AgentIdentity: identityAbi, AgentReputation: reputationAbi } as const

for (const name of ['AgentIdentity', 'AgentReputation'] as const) {
  describe(name, () => {
    const own = hashesOf(artifact(name).abi as Abi)

    for (const [signature, hash] of Object.entries(published[name])) {
      it(`has ${signature.slice(0, signature.indexOf('('))} as published`, () => {
        const item = parseAbiItem([signature] as readonly [string]) as Abi[number]
        assert.equal(hashesOf([item]).get(hash), shapeOf(item), 'the hash is the one of this signature')
        assert.equal(own.get(hash), shapeOf(item))
      })
    }

    it('is asked by the service for nothing else', () => {
      for (const [hash, shape] of hashesOf(read[name] as Abi)) {
        assert.ok(Object.values<string>(published[name]).includes(hash), shape)
        assert.equal(own.get(hash), shape)
      }
    })
  })
}

/** Selector or topic → types of what goes in and comes out, and what is indexed. */
function hashesOf(abi: Abi): Map<string, string> {
  return new Map(
    abi.flatMap((item): [string, string][] => {
      if (item.type === 'event') return [[toEventSelector(item), shapeOf(item)]]
      if (item.type === 'function') return [[toFunctionSelector(item), shapeOf(item)]]
      if (item.type !== 'error') return []
      const inputs = item.inputs.map(({ type }) => type).join()
      return [[toFunctionSelector(`${item.name}(${inputs})`), shapeOf(item)]]
    }),
  )
}

function shapeOf(item: Abi[number]): string {
  if (!('name' in item)) return item.type
  const inputs = item.inputs.map((input) => `${input.type}${'indexed' in input && input.indexed ? ' indexed' : ''}`)
  const outputs = 'outputs' in item ? item.outputs.map(({ type }) => type) : []
  return `${item.type} ${item.name}(${inputs.join()}) → (${outputs.join()})`
}

function artifact(name: keyof typeof published): Artifact {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'artifacts', `${name}.json`), 'utf8'))
}
