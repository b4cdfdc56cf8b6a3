/** Ends a benchmark and removes what it made: on its own, after its time, or when it is interrupted. */

/** Runs `work` and closes in reverse order whatever it puts on the stack; then the process ends. Any failure is exit code 1. */
export async function bounded(limitMs: number, work: (made: AsyncDisposableStack) => Promise<void>): Promise<never> {
  const made = new AsyncDisposableStack()
  const interrupted = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Error(signal)))
    setTimeout(() => reject(new Error(`The benchmark took more than ${limitMs / 1000} s.`)), limitMs).unref()
  })
  let code = 0
  try {
    await Promise.race([work(made), interrupted])
  } catch (error) {
    console.error(error)
    code = 1
  }
  await made.disposeAsync().catch((error: unknown) => {
    console.error(error)
    code = 1
  })
  process.exit(code) // work that was cut short may still wait for something
}
