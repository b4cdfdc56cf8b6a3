/** The program of the package for clients: the commands that need no service, no settings file and no database. */
import { payCommand } from '../payments/pay.ts'
import { runProgram } from '../run-program.ts'
import { proveCommand, verifyCommand } from '../verify.ts'

await runProgram([verifyCommand(), proveCommand(), payCommand()])
