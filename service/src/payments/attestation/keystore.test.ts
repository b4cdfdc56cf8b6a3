import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { walletKeystore } from '../../../test/support/attestation.ts'
import { readKeystore } from './keystore.ts'

const salt = 'ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd'
const secret = '7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d'

// The test vectors of the definition, whose newer scrypt vector contradicts itself: https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage
const byPbkdf2 = {
  crypto: {
    cipher: 'aes-128-ctr',
    cipherparams: { iv: '6087dab2f9fdbbfaddc31a909735c1e6' },
    ciphertext: '5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46',
    kdf: 'pbkdf2',
    kdfparams: { c: 262_144, dklen: 32, prf: 'hmac-sha256', salt },
    mac: '517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2',
  },
  id: '3198bc9c-6672-5ab3-d995-4942343ae5b6',
  version: 3,
}
const byScrypt = {
  crypto: {
    cipher: 'aes-128-ctr',
    cipherparams: { iv: '83dbcc02d8ccb40e466191a123791e0e' },
    ciphertext: 'd172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c',
    kdf: 'scrypt',
    kdfparams: {
      dklen: 32,
      n: 262_144,
      r: 1,
      p: 8,
      salt: 'ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19',
    },
    mac: '2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097',
  },
  id: '3198bc9c-6672-5ab3-d995-4942343ae5b6',
  version: 3,
}
describe('a V3 keystore', () => {
  for (const [name, vector] of Object.entries({ byPbkdf2, byScrypt }))
    it(`is opened by its password (${name})`, async () => {
      const found = await readKeystore(JSON.stringify(vector), 'testpassword')
      assert.ok(found.ok, found.ok ? '' : found.reason)
      assert.equal(Buffer.from(found.privateKey).toString('hex'), secret)
    })

  it('is opened as wallets make it', async () => {
    const found = await readKeystore(JSON.stringify(walletKeystore), '')
    assert.ok(found.ok, found.ok ? '' : found.reason)
  })

  it('may name its address, which must be that of its key', async () => {
    const address = '008aeeda4d805471df9b2a5b0f38a0c3bcba786b'
    const named = (text: string) => readKeystore(JSON.stringify({ ...byPbkdf2, address: text }), 'testpassword')
    assert.equal((await named(address)).ok, true)
    assert.equal((await named(`0x${address.toUpperCase()}`)).ok, true)
    assert.deepEqual(await named(`11${address.slice(2)}`), {
      ok: false,
      reason: 'it holds the key of another address',
    })
  })

  it('stays closed to another password, and to an altered file', async () => {
    const closed = { ok: false, reason: 'the password is wrong, or the file is damaged' }
    assert.deepEqual(await readKeystore(JSON.stringify(byPbkdf2), 'testpasswort'), closed)
    const altered = {
      ...byPbkdf2,
      crypto: { ...byPbkdf2.crypto, ciphertext: byPbkdf2.crypto.ciphertext.replace('5', '6') },
    }
    assert.deepEqual(await readKeystore(JSON.stringify(altered), 'testpassword'), closed)
  })

  const params = (more: object) => ({ crypto: { ...byPbkdf2.crypto, ...more } })
  const scrypt = (more: object) => ({
    crypto: { ...byScrypt.crypto, kdfparams: { ...byScrypt.crypto.kdfparams, ...more } },
  })
  const refused: Record<string, [change: object | string, reason: RegExp]> = {
    'no JSON': ['secret', /not a JSON object/],
    'a list': ['[]', /not a JSON object/],
    'a long text': [JSON.stringify(byPbkdf2).padEnd(16_385), /not a JSON object/],
    'version 1': [{ version: 1 }, /version 3/],
    'no crypto': [{ crypto: null }, /cipher/],
    'another cipher': [params({ cipher: 'aes-128-cbc' }), /cipher/],
    'a short key': [params({ ciphertext: '5318' }), /incomplete/],
    'a short iv': [params({ cipherparams: { iv: '00' } }), /incomplete/],
    'no mac': [params({ mac: undefined }), /incomplete/],
    'another derivation': [params({ kdf: 'argon2id' }), /derivation/],
    'another hash': [params({ kdfparams: { ...byPbkdf2.crypto.kdfparams, prf: 'hmac-sha512' } }), /derivation/],
    'endless rounds': [params({ kdfparams: { ...byPbkdf2.crypto.kdfparams, c: 1e12 } }), /derivation/],
    'a derived key of 64 bytes': [params({ kdfparams: { ...byPbkdf2.crypto.kdfparams, dklen: 64 } }), /derivation/],
    'a gigabyte of memory': [scrypt({ n: 2 ** 20, r: 8, p: 1 }), /derivation/],
    'minutes of work': [scrypt({ n: 262_144, r: 8, p: 9 }), /derivation/],
    'n that is no power of two': [scrypt({ n: 262_143 }), /derivation/],
    'negative n': [scrypt({ n: -2 }), /derivation/],
    'p as text': [scrypt({ p: '1' }), /derivation/],
  }
  for (const [name, [change, reason]] of Object.entries(refused))
    it(`is refused at once for ${name}`, async () => {
      const text = typeof change === 'string' ? change : JSON.stringify({ ...byPbkdf2, ...change })
      const found = await Promise.race([readKeystore(text, 'testpassword'), turn(null)])
      assert.ok(found !== null, 'no key is derived in the background')
      assert.ok(!found.ok)
      assert.match(found.reason, reason)
    })
})
