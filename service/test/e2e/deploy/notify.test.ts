/** The reports of `touchstone serve` to systemd (Type=notify), as a datagram socket receives them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readServiceManager } from '../../../src/app/config/service-manager.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { touchstone } from '../../support/processes/cli.ts'
import { noChain } from '../../support/processes/env.ts'
import { noServiceManager, startServiceManager } from '../../support/processes/service-manager.ts'
import { until } from '../../support/wait.ts'

describe('the variables of a service manager', () => {
  it('name its socket, and the time of the watchdog where it waits for this process', () => {
    const NOTIFY_SOCKET = '/run/systemd/notify'
    const watched = (pid: string) => readServiceManager({ NOTIFY_SOCKET, WATCHDOG_USEC: '60000000', WATCHDOG_PID: pid })
    assert.deepEqual(watched(String(process.pid)), { socket: NOTIFY_SOCKET, watchdogMs: 60_000 })
    assert.deepEqual(watched('1'), { socket: NOTIFY_SOCKET, watchdogMs: null })
    assert.deepEqual(readServiceManager({ NOTIFY_SOCKET, WATCHDOG_USEC: '0x10' })?.watchdogMs, null)
    assert.equal(readServiceManager({}), null)
    assert.equal(readServiceManager({ NOTIFY_SOCKET: 'run/notify', WATCHDOG_USEC: '60000000' }), null)
  })
})

describe('touchstone serve under systemd', { skip: noServiceManager }, () => {
  it('reports that it serves, that it is alive, and that it stops', async () => {
    await using opened = new AsyncDisposableStack()
    const manager = opened.use(await startServiceManager())
    const dataDir = testFolder()
    await copyEmptyPglite(join(dataDir, 'store'))
    const service = touchstone(['serve', '--only', 'verification'], {
      DATA_DIR: dataDir,
      ...noChain,
      VERIFICATION_PORT: '0',
      NOTIFY_SOCKET: manager.socket,
      WATCHDOG_USEC: '400000',
    })
    opened.defer(() => void service.child.kill('SIGKILL'))
    await until(() => manager.reports().length > 0 || service.child.exitCode !== null)
    assert.match(service.said(), /verification host listens/)
    assert.equal(manager.reports()[0], 'READY=1')
    await until(() => manager.reports().filter((report) => report === 'WATCHDOG=1').length >= 2)
    service.child.kill('SIGTERM')
    await service.ended
    assert.equal(service.child.exitCode, 0, service.said())
    await until(() => manager.reports().includes('STOPPING=1'))
    const reports = manager.reports()
    assert.deepEqual([...new Set(reports)], ['READY=1', 'WATCHDOG=1', 'STOPPING=1'])
    assert.deepEqual(
      reports.filter((report) => report !== 'WATCHDOG=1'),
      ['READY=1', 'STOPPING=1'],
    )
    assert.ok(!service.said().includes('systemd not notified'))
  })
})
