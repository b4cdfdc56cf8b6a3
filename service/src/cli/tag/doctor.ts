/** `touchstone tag doctor`: names the mistake in a tag that does not verify (spec §4.4). It consumes no tap and needs no chain. */
import type { Command } from 'commander'
import { diagnose, type Diagnosis } from '../../tap/provisioning/doctor.ts'
import { argument } from '../session/arguments.ts'
import { defineCommand, inSession } from '../session/command.ts'
import { CommandError, type RunWork, type Session } from '../session/session.ts'

type Options = { readonly uid?: readonly Uint8Array[]; readonly json?: true }

export function doctorCommand(run: RunWork): Command {
  return defineCommand(
    'doctor',
    'Explains why an address of a tag does not verify: keys, roles, derivation, offsets, mirrors, placeholders.',
    {
      notes: `It tries the batches of this data folder, factory keys and published example keys. The tap is not consumed, and no key
and no MAC is shown. Exit code 0 when nothing is wrong, 1 when something is.`,
      examples: ["touchstone tag doctor 'https://verify.example.com/api/verify?picc=…&cmac=…'"],
    },
  )
    .argument('<url>', 'address that the tag gave, in quotes')
    .option('--uid <uids>', 'UIDs it may be, for a tag that hides its own or has its keys swapped', argument.uids)
    .option('--json', 'print a JSON object')
    .action(inSession(run, doctor))
}

async function doctor({ store, io }: Session, url: string, { uid: uids = [], json }: Options): Promise<number> {
  if (url.length > 2_048) throw new CommandError('An address has at most 2048 characters.')
  const diagnosis = await diagnose(url, { batches: store.tagKeys.batches(), uids })
  if (json === true) io.out(JSON.stringify(diagnosis, null, 2))
  else for (const line of format(diagnosis)) io.out(line)
  return diagnosis.ok ? 0 : 1
}

function format({ ok, findings, uid, counter, batchId, macInput, scheme, fileKeyNo, tagByte }: Diagnosis): string[] {
  const facts: readonly (readonly [string, string | number | null])[] = [
    ['uid', uid],
    ['counter', counter],
    ['batch', batchId],
    ['tag byte', tagByte],
    ['mac input', macInput],
    ['derivation', scheme],
    ['file key slot', fileKeyNo],
  ]
  return [
    ...(ok ? ['Nothing is wrong with this address: it verifies once, unless it was used before.'] : []),
    ...findings.map(({ text, code }) => `${text} [${code}]`),
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(14)} ${value}`])),
  ]
}
