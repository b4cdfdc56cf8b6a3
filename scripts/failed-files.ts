/** Reporter of `node --test` that gives the files of failed tests, one a line, each once. */
import type { EventData } from 'node:test'

type TestEvent = { readonly type: string; readonly data: Partial<EventData.TestFail> }

// oxlint-disable-next-line import/no-default-export -- Node reads a reporter so
export default async function* failedFiles(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed = new Set<string>()
  for await (const { type, data } of events) {
    // A file that shares a process is a test of that name.
    const file = data.name?.endsWith('.test.ts') === true ? data.name : (data.file ?? data.name)
    if (type !== 'test:fail' || file === undefined || failed.has(file)) continue
    failed.add(file)
    yield `${file}\n`
  }
}
