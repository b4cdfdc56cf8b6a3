#!/usr/bin/env node
/**
 * `touchstone`. What is compiled once is kept beside the packages, which halves the start of every command; everything else is in
 * `commands/program.ts`, loaded after that is known.
 */
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/touchstone', import.meta.url)))
const { runCli } = await import('./commands/program.ts')
await runCli()
