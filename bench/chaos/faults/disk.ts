/** The data folder of one instance is on a small disk that is filled to the last byte. The instance is restarted meanwhile. */
import { execFile } from 'node:child_process'
import { cp, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Fault, NotRun } from './fault.ts'
import type { Fleet } from '../fleet.ts'

const run = promisify(execFile)
const diskIn = ({ folder }: Fleet) => join(folder, 'disk')

export const diskFull: Fault = {
  about: 'no byte is left on the disk of one instance’s data folder; it is killed and started again meanwhile',
  mayEnd: ['a'], // it cannot take hold of the folder, says so, and ends
  async prepare(fleet, made) {
    const disk = diskIn(fleet)
    await mkdir(disk)
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', disk]).catch((error: unknown) => {
      throw new NotRun('a small disk cannot be mounted here, which takes root', { cause: error })
    })
    made.defer(async () => {
      await fleet.instances[0]?.stop()
      fleet.wishes.delete('a')
      await run('umount', [disk])
      await fleet.instances[0]?.start()
    })
    await cp(join(fleet.dataDirOf('a'), 'keys'), join(disk, 'keys'), { recursive: true })
  },
  wishes: (fleet) => ({ a: { env: { DATA_DIR: diskIn(fleet) } } }),
  async strike(fleet, ms) {
    const filler = join(diskIn(fleet), 'filler')
    const bytes = await fill(filler)
    await delay(ms / 2)
    await fleet.instances[0]?.kill()
    await delay(ms / 2)
    await rm(filler)
    return `${bytes} bytes filled it`
  },
}

async function fill(path: string): Promise<number> {
  const file = await open(path, 'w')
  let written = 0
  try {
    for (const size of [65_536, 512, 1]) {
      for (;;) written += (await file.write(new Uint8Array(size))).bytesWritten
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    await file.close()
  }
  return written
}
