/**
 * Keys in a PKCS#11 token (spec §5), such as an HSM: the private halves never leave it. Operations run in a thread of their own, one
 * after another, each under a deadline. The optional package `pkcs11js` is compiled on the machine: `npm install pkcs11js`.
 */
import { Worker } from 'node:worker_threads'
import { withDeadline } from '../../lib/async/deadline.ts'
import { ServiceError } from '../../lib/errors.ts'
import { moduleUrl } from '../../lib/module-url.ts'
import { type AesKeyHandle, type KeyStore, KeyStoreError, type SigningKey } from '../key.ts'
import type { Operations, Pkcs11Options, PublicKey } from './session.ts'
import type { OperationName, Request, Response } from './worker.ts'

/** Milliseconds for an operation; a login, and a key that is made, may take longer. */
const operationMs = 5_000
const slowMs = 30_000
/** Operations that may wait. Beyond, a call fails at once: the token does not follow. */
const mostWaiting = 2_000

/** Logs in. Throws a KeyStoreError, a sentence for the operator that never holds the PIN, or KEY_STORE_UNAVAILABLE. */
export async function openToken(
  options: Pkcs11Options,
  deadlines: { readonly operationMs?: number } = {},
): Promise<KeyStore & AsyncDisposable> {
  const worker = new Worker(moduleUrl('./worker', import.meta.url), { workerData: options })
  worker.unref()
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  let failure: Error | undefined
  /** From a missed deadline to the next answer: the module may block the thread, which only a signal ends. */
  let isHung = false
  const endHung = () => {
    if (!isHung) return
    process.removeAllListeners('SIGTERM')
    process.kill(process.pid, 'SIGTERM')
  }
  process.on('exit', endHung) // Node would wait for the thread

  worker.on('message', (response: Response) => {
    isHung = false
    const call = waiting.get(response.id)
    waiting.delete(response.id)
    if ('value' in response) call?.resolve(response.value)
    else call?.reject(toError(response.error))
  })
  worker.on('error', (error) => end(unavailable('The thread of the PKCS#11 token failed.', error)))
  worker.on('exit', () => {
    process.off('exit', endHung)
    end(unavailable('The PKCS#11 token is closed.'))
  })

  function end(error: Error): void {
    failure ??= error
    for (const { reject } of waiting.values()) reject(failure)
    waiting.clear()
  }

  function call<Name extends OperationName>(
    operation: Name,
    parameters: Parameters<Operations[Name]>,
    ms = deadlines.operationMs ?? operationMs,
  ): Promise<ReturnType<Operations[Name]>> {
    if (failure !== undefined) return Promise.reject(failure)
    if (waiting.size >= mostWaiting) return Promise.reject(unavailable('The PKCS#11 token is overloaded.'))
    const id = ++last
    const answered = Promise.withResolvers<unknown>()
    waiting.set(id, answered)
    worker.postMessage({ id, operation, parameters } satisfies Request)
    const onTimeout = () => {
      isHung = true
      throw unavailable(`The PKCS#11 token did not answer within ${ms} ms.`)
    }
    return withDeadline(answered.promise as Promise<ReturnType<Operations[Name]>>, ms, { onTimeout })
  }

  const signingKeyOf = ({ name, curve, publicKey }: PublicKey): SigningKey => ({
    name,
    curve,
    publicKey,
    sign: (input) => call('sign', [name, curve, input]),
  })
  const aesKeyOf = (name: string): AesKeyHandle => ({
    ecbDecrypt: (block) => call('ecbDecrypt', [name, block]),
    cmac: (message) => call('cmac', [name, message]),
  })

  async function close(): Promise<void> {
    if (failure === undefined && !isHung) await call('close', []).catch(() => {})
    const ended = worker.terminate()
    if (isHung) worker.unref()
    else await ended
  }

  try {
    await call('login', [], slowMs)
  } catch (error) {
    await close()
    throw error instanceof ServiceError && error.cause instanceof Error
      ? new KeyStoreError('The PKCS#11 token cannot be opened: check its label and PIN.', { cause: error.cause })
      : error
  }
  return {
    async signingKey(name) {
      const found = await call('signingKey', [name])
      return found && signingKeyOf(found)
    },
    signingKeys: async (prefix) => (await call('signingKeys', [prefix])).map(signingKeyOf),
    aesKey: async (name) => ((await call('hasAesKey', [name])) ? aesKeyOf(name) : null),
    supports: (curve) => call('supports', [curve]),
    generateSigningKey: async (name, curve) => signingKeyOf(await call('generateSigningKey', [name, curve], slowMs)),
    async generateAesKey(name) {
      await call('generateAesKey', [name], slowMs)
      return aesKeyOf(name)
    },
    [Symbol.asyncDispose]: close,
  }
}

function toError({ message, isOurs }: { readonly message: string; readonly isOurs: boolean }): Error {
  return isOurs ? new KeyStoreError(message) : unavailable('The PKCS#11 token did not answer.', new Error(message))
}

function unavailable(message: string, cause?: unknown): ServiceError {
  return new ServiceError('KEY_STORE_UNAVAILABLE', message, { cause })
}
