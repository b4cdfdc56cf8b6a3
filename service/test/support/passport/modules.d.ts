/** Types of the test-only packages that ship none: just what the tests here use of them. */
declare module '@digitalbazaar/vc' {
  type DocumentLoader = (url: string) => Promise<{ documentUrl: string; document: unknown }>
  type Result = { verified: boolean; error?: unknown }
  export function _checkCredential(options: { credential: object; now?: Date; mode?: 'issue' | 'verify' }): void
  export function verifyCredential(options: {
    credential: object
    suite: object
    documentLoader: DocumentLoader
    now?: Date
    checkStatus?: (options: object) => Promise<Result>
  }): Promise<Result & { statusResult?: Result }>
}

declare module '@digitalbazaar/credentials-context' {
  export const named: ReadonlyMap<string, { readonly id: string; readonly context: object }>
}

declare module '@digitalbazaar/ed25519-multikey' {
  export function fromJwk(options: { jwk: object }): Promise<{ publicKeyMultibase: string }>
}

declare module '@digitalbazaar/data-integrity' {
  export class DataIntegrityProof {
    constructor(options: { cryptosuite: object })
  }
}

declare module '@digitalbazaar/eddsa-jcs-2022-cryptosuite' {
  export function createVerifyCryptosuite(): object
}

declare module '@digitalbazaar/vc-bitstring-status-list' {
  type DocumentLoader = (url: string) => Promise<{ documentUrl: string; document: unknown }>
  export function decodeList(options: {
    encodedList: string
  }): Promise<{ length: number; getStatus: (index: number) => boolean }>
  export function checkStatus(options: { credential: object; documentLoader: DocumentLoader; suite: object }): Promise<{
    verified: boolean
    error?: unknown
    results?: { status: boolean; credentialStatus: { statusPurpose: string } }[]
  }>
}
