import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { toEventSelector, toFunctionSelector } from 'viem'
import { assetRegistryAbi } from '../service/src/domain/registry-abi.ts'
import { compileContract, contractFiles, type Artifact, type ContractName } from './solidity.ts'

const names = Object.keys(contractFiles) as ContractName[]
const registry = committed('AssetRegistry')

describe('the committed artifacts', () => {
  for (const name of names) {
    it(`${name} is what its source compiles to`, () => {
      assert.deepEqual(committed(name), compileContract(name))
    })
  }

  it('hold no link references or metadata trailer', () => {
    for (const name of names) assert.match(committed(name).bytecode, /^0x([0-9a-f]{2})+$/)
  })
})

describe('AssetRegistry', () => {
  it('has the ABI that the service reads', () => {
    assert.deepEqual(assetRegistryAbi, withoutDefaults(registry.abi))
  })

  it('fits into the runtime limit of EIP-170', () => {
    const bytes = (registry.deployedBytecode.length - 2) / 2
    assert.ok(bytes <= 24_576, `${bytes} bytes`)
  })

  it('keeps its records at mapping slot 3, one slot each', () => {
    const records = registry.storageLayout.storage.find((variable) => variable.label === '_assets')
    assert.equal(records?.slot, '3')
    const types = registry.storageLayout.types as Record<string, { value?: string; numberOfBytes: string }>
    const record = types[types[records?.type ?? '']?.value ?? '']
    assert.equal(record?.numberOfBytes, '32')
  })

  it('has the documented selectors', () => {
    assert.equal(toFunctionSelector(functionOf('getAsset')), '0xeac8f5b8')
    assert.equal(toFunctionSelector(functionOf('getAssets')), '0x6c6458f1')
  })

  it('emits the events of the public deployment', () => {
    const shared = {
      AssetMinted: 'AssetMinted(uint256 indexed tokenId, address indexed to, bytes32 metadata)',
      TagBound: 'TagBound(uint256 indexed tokenId, bytes32 indexed tagHash)',
      StateChanged: 'StateChanged(uint256 indexed tokenId, uint8 from, uint8 to, address actor)',
      AssetResold: 'AssetResold(uint256 indexed tokenId, address indexed from, address indexed to)',
      Transfer: 'Transfer(address indexed from, address indexed to, uint256 indexed tokenId)',
    }
    for (const [name, signature] of Object.entries(shared)) {
      const event = assetRegistryAbi.find((item) => item.type === 'event' && item.name === name)
      assert.ok(event?.type === 'event')
      assert.equal(toEventSelector(event), toEventSelector(`event ${signature}`))
      const parameters = event.inputs.map(
        (input) => `${input.type}${'indexed' in input ? ' indexed' : ''} ${input.name}`,
      )
      assert.equal(`${name}(${parameters.join(', ')})`, signature)
    }
  })

  it('has its signing domain in the code, so that every deployment has a code hash of its own', () => {
    assert.ok(Object.keys(registry.immutableReferences).length >= 3)
  })
})

describe('Multicall3', () => {
  it('answers to the well-known selector', () => {
    assert.equal(toFunctionSelector('aggregate3((address,bool,bytes)[])'), '0x82ad56cb')
    assert.ok(committed('Multicall3').deployedBytecode.includes('82ad56cb'))
  })
})

/** Leaves out what the human-readable form does not hold. That is names of the Solidity types, empty names and flags that are false. */
function withoutDefaults(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (key, member: unknown) =>
    key === 'internalType' || (key === 'name' && member === '') || member === false ? undefined : member,
  )
}

function functionOf(name: string) {
  const found = assetRegistryAbi.find((item) => item.type === 'function' && item.name === name)
  assert.ok(found?.type === 'function')
  return found
}

function committed(name: ContractName): Artifact {
  return JSON.parse(readFileSync(join(import.meta.dirname, 'artifacts', `${name}.json`), 'utf8'))
}
