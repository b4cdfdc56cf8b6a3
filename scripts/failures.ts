/** Reporter of `node --test` that gives the failed tests with their errors, and at the end how many tests there were. */
import type { EventData } from 'node:test'
import { inspect } from 'node:util'

type TestEvent =
  | { readonly type: 'test:fail'; readonly data: EventData.TestFail }
  | { readonly type: 'test:stderr'; readonly data: EventData.TestStderr }
  | { readonly type: 'test:summary'; readonly data: EventData.TestSummary }

// oxlint-disable-next-line import/no-default-export -- Node reads a reporter so
export default async function* failures(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  let failed = 0
  for await (const { type, data } of events)
    if (type === 'test:stderr') yield data.message
    else if (type === 'test:fail') {
      const { failureType, cause } = data.details.error as Error & { readonly failureType?: string }
      // A suite fails with its tests, which are given.
      if (failureType === 'subtestsFailed') continue
      failed += 1
      yield `✖ ${data.name} (${data.file}:${data.line})\n${inspect(cause ?? data.details.error)}\n`
    } else if (type === 'test:summary' && data.file === undefined)
      yield `${data.counts.tests} tests, ${failed} failed\n`
}
