/** The thread of a PKCS#11 token. It loads `pkcs11js` and runs one operation after another, so that none blocks the event loop. */
import { createRequire } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import { KeyStoreError } from '../key.ts'
import { openOperations, type Operations, type Pkcs11Options } from './session.ts'
import type { Module } from './standard.ts'

export type OperationName = keyof Operations
/** Arguments and results are structured-cloned. */
export type Request = Readonly<{ id: number; operation: OperationName; parameters: readonly unknown[] }>
/** `isOurs`: the message is a sentence for the operator; else it is an error of the module. */
export type Response = Readonly<
  { id: number; value: unknown } | { id: number; error: Readonly<{ message: string; isOurs: boolean }> }
>

const options = workerData as Pkcs11Options
const port = parentPort ?? failOutside()
let operations: Operations | undefined

port.on('message', ({ id, operation, parameters }: Request) => respond(id, operation, parameters))

function respond(id: number, operation: OperationName, parameters: readonly unknown[]): void {
  let response: Response
  try {
    operations ??= openOperations(load(options), options)
    const run = operations[operation] as (...parameters: readonly unknown[]) => unknown
    response = { id, value: run(...parameters) }
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown reason'
    response = { id, error: { message, isOurs: error instanceof KeyStoreError } }
  }
  port.postMessage(response)
  if (operation === 'close') port.close()
}

function load({ packageFolder, module: path }: Pkcs11Options): Module {
  const require = createRequire(import.meta.url)
  let PKCS11: new () => Module
  try {
    PKCS11 = (require(packageFolder ?? 'pkcs11js') as { PKCS11: new () => Module }).PKCS11
  } catch {
    throw new KeyStoreError('Keys in a PKCS#11 token need the package pkcs11js: run npm install pkcs11js.')
  }
  const module = new PKCS11()
  try {
    module.load(path)
  } catch {
    throw new KeyStoreError(`The PKCS#11 module ${path} cannot be loaded.`)
  }
  return module
}

function failOutside(): never {
  throw new Error('This file runs in a worker thread only.')
}
