/** `touchstone tag …`: from blank chips to tags that verify (spec §4.4). */
import type { Command } from 'commander'
import { defineGroup } from '../session/command.ts'
import type { RunWork } from '../session/session.ts'
import { batchCommand } from './batch.ts'
import { commitmentsCommand } from './commitments.ts'
import { emulateCommand } from './emulate.ts'
import { importCommand } from './import/import.ts'
import { keysCommand } from './keys.ts'
import { prepareCommand } from './prepare.ts'
import { templateCommand } from './template.ts'
import { tagDoctorCommand } from './doctor.ts'
import { verifyTagCommand } from './verify.ts'
import { writeCommand } from './write/write.ts'

export function tagCommand(run: RunWork, print: (line: string) => void): Command {
  return defineGroup(
    'tag',
    'Tags: batches and their keys, templates, import, verification and diagnosis.',
    [
      batchCommand(run),
      templateCommand(print),
      keysCommand(run),
      prepareCommand(run),
      writeCommand(run),
      importCommand(run),
      verifyTagCommand(run),
      tagDoctorCommand(run),
      commitmentsCommand(run),
      emulateCommand(run),
    ],
    `From blank chips to products:
  1. touchstone tag batch create 2026-watches
  2. touchstone tag prepare tags.csv --batch 2026-watches --host verify.example.com --reveal   (for a station of your own)
     or touchstone tag write --from tags.csv --batch 2026-watches --host verify.example.com    (with a PC/SC reader)
  3. touchstone tag import tags.csv --batch 2026-watches --mint --bind --activate`,
  )
}
