/** Long work shows what it is at: one line a step, with its time when it is done. */

export type Progress = {
  readonly step: <T>(name: string, run: (say: (detail: string) => void) => Promise<T>) => Promise<T>
}

export function createProgress(write: (text: string) => void): Progress {
  return {
    async step(name, run) {
      const began = performance.now()
      write(`  … ${name}\n`)
      const result = await run((detail) => write(`    ${detail}\n`))
      write(`  ✔ ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)\n`)
      return result
    },
  }
}
