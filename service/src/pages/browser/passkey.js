/**
 * Signs with a key that is derived from a passkey (WebAuthn Level 3, extension `prf`). The authenticator derives a
 * secret for this site. The page makes a secp256k1 key of it, signs typed data (EIP-712), and overwrites the key.
 * Neither the secret nor the key leaves the page.
 */
import { secp256k1 } from './noble/curves/secp256k1.js'
import { keccak_256 as keccak } from './noble/hashes/sha3.js'
import { bytesToHex, hexToBytes, utf8ToBytes } from './noble/hashes/utils.js'
import { typedDataDigest } from './verdict/attestation/eip712.js'

/** Input of the derivation. Another one gives another key, so it never changes. */
const salt = utf8ToBytes('touchstone owner key, version 1')

/** Returns a provider with the two requests of a step by signature (EIP-1193). `isNew`: it makes a passkey first. */
export function passkeyProvider({ isNew }) {
  let credential
  let key
  return {
    async request({ method, params }) {
      if (method === 'eth_requestAccounts') {
        if (isNew && credential === undefined) credential = await newPasskey()
        key = await keyOf(credential)
        return [addressOf(key)]
      }
      if (method !== 'eth_signTypedData_v4' || key === undefined) throw new Error(`A passkey has no ${method}.`)
      const data = JSON.parse(params[1])
      assertSignable(data)
      return sign(key, hexToBytes(typedDataDigest(data).slice(2)))
    },
    /** Overwrites the key, at the end of each step. */
    forget() {
      key?.fill(0)
      key = undefined
    },
  }
}

/** Makes a passkey that this site finds again. It is used once more after that, so that no key is taken that cannot be derived again. */
async function newPasskey() {
  const made = await asked(() =>
    navigator.credentials.create({
      publicKey: {
        challenge: crypto.getRandomValues(new Uint8Array(32)),
        rp: { name: location.hostname },
        user: { id: crypto.getRandomValues(new Uint8Array(16)), ...names() },
        pubKeyCredParams: [-7, -257].map((alg) => ({ type: 'public-key', alg })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        extensions: { prf: { eval: { first: salt } } },
      },
    }),
  )
  if (made.getClientExtensionResults().prf?.enabled !== true) throw unsupported()
  return { type: 'public-key', id: made.rawId }
}

/** Names the passkey in the lists of the device. */
function names() {
  const name = `Touchstone, ${new Date().toISOString().slice(0, 10)}`
  return { name, displayName: name }
}

async function keyOf(credential) {
  const used = await asked(() =>
    navigator.credentials.get({
      publicKey: {
        challenge: crypto.getRandomValues(new Uint8Array(32)),
        allowCredentials: credential === undefined ? [] : [credential],
        userVerification: 'required',
        extensions: { prf: { eval: { first: salt } } },
      },
    }),
  )
  const secret = used.getClientExtensionResults().prf?.results?.first
  if (secret === undefined) throw unsupported()
  const base = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits'])
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt, info: utf8ToBytes('secp256k1') }
  // 48 bytes, so that the key is uniform in the order of the curve (FIPS 186-5, A.2.1).
  return secp256k1.utils.randomSecretKey(new Uint8Array(await crypto.subtle.deriveBits(hkdf, base, 384)))
}

/** Browsers answer alike for a visitor who cancels and a device without a passkey of this site. */
async function asked(ask) {
  try {
    return await ask()
  } catch (error) {
    throw Object.assign(new Error('No passkey was used.', { cause: error }), { code: 4001 })
  }
}

function unsupported() {
  return Object.assign(new Error('The passkey derives no secret.'), { reason: 'noPrf' })
}

function addressOf(key) {
  return `0x${bytesToHex(keccak(secp256k1.getPublicKey(key, false).subarray(1)).subarray(12))}`
}

/** Throws for a member that is missing, or of a type that the registry has not. The digest would be that of other data. */
function assertSignable({ types, primaryType, message }) {
  for (const { name, type } of types[primaryType])
    if (message[name] === undefined || !/^(?:string|uint\d+|address|bytes32)$/.test(type))
      throw new TypeError(`The member ${name} of type ${type} is not one of the registry.`)
}

/** Signs as wallets do: r, s in the lower half, v 27 or 28. */
function sign(key, digest) {
  const [recovery, ...signature] = secp256k1.sign(digest, key, { prehash: false, format: 'recovered' })
  return `0x${bytesToHex(Uint8Array.from(signature))}${(27 + recovery).toString(16)}`
}
