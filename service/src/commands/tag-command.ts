/** `touchstone tag …`: from a box of blank chips to tags that verify (spec §4.4). */
import { Command } from 'commander'
import { batchCommand } from './tag-batch.ts'
import { doctorCommand } from './tag-doctor.ts'
import { emulateCommand } from './tag-emulate.ts'
import { importCommand } from './tag-import.ts'
import { keysCommand } from './tag-keys.ts'
import { templateCommand } from './tag-template.ts'
import { verifyTagCommand } from './tag-verify.ts'
import { writeCommand } from './tag-write.ts'
import type { RunWork } from './store-command.ts'

export function tagCommand(run: RunWork, print: (line: string) => void): Command {
  const tag = new Command('tag').description(
    'Tags: batches and their keys, templates, import, taps and what is wrong with them.',
  )
  const commands = [
    batchCommand(run),
    templateCommand(print),
    keysCommand(run),
    writeCommand(run),
    importCommand(run),
    verifyTagCommand(run),
    doctorCommand(run),
    emulateCommand(run),
  ]
  for (const command of commands) tag.addCommand(command)
  return tag.addHelpText(
    'after',
    `
From blank chips to products:
  1. touchstone tag batch create 2026-watches
  2. touchstone tag template --host verify.example.com
  3. touchstone tag keys --batch 2026-watches --uid 04… --host verify.example.com --reveal --out station.json
  4. write the tags, then: touchstone tag import tags.csv --mint --bind --activate`,
  )
}
