/** Announcements of new blocks: real ones of anvil, and sockets that are silent, flood or close. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { WebSocketServer, type WebSocket } from 'ws'
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import { indexerOver, operator, startIndexChain } from '../../../test/support/index/world.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { until } from '../../../test/support/wait.ts'
import { createLog } from '../../lib/log.ts'
import { createBlockAnnouncements } from './announcements.ts'

describe('announcements of new blocks', () => {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line))

  describe('of a node', () => {
    const database = useOpened(openEmptyPglite)
    const chain = useOpened(startIndexChain)

    it('bring the index to each block long before its next poll', async (t) => {
      const indexer = indexerOver(chain, database, { pollMs: 600_000 })
      const reached = async () => (await indexer.status()).indexed?.number === (await chain.head())
      indexer.start()
      await until(reached)
      const announcements = createBlockAnnouncements({
        urls: [chain.url.replace(/^http/, 'ws')],
        onBlock: indexer.wake,
        log,
        retryMs: 10,
      })
      t.after(() => announcements.close())
      // A block that is mined before the subscription is made is not announced.
      await until(async () => {
        await chain.mine(1)
        return lines.some((line) => line.includes('new blocks are announced'))
      })
      for (let block = 0; block < 3; block += 1) {
        await chain.send(operator.address, 'mint', [operator.address, `0x${'ab'.repeat(32)}`])
        await until(reached)
      }
    })
  })

  describe('of a socket', () => {
    let server: WebSocketServer
    let url: string
    let connections = 0
    let onConnection: (socket: WebSocket) => void
    before(async () => {
      server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
      await once(server, 'listening')
      url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
      server.on('connection', (socket) => {
        connections += 1
        onConnection(socket)
      })
    })
    after(() => {
      for (const socket of server.clients) socket.terminate()
      server.close()
    })
    const head =
      '{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{"number":"0xffffff"}}}'

    it('that floods are passed on at most once in the gap', async () => {
      let calls = 0
      const sent = Promise.withResolvers<void>()
      onConnection = async (socket) => {
        await once(socket, 'message')
        for (let at = 0; at < 20_000; at += 1) socket.send(head)
        socket.send(head, () => sent.resolve())
      }
      const announcements = createBlockAnnouncements({ urls: [url], onBlock: () => (calls += 1), log, gapMs: 5_000 })
      await sent.promise
      await until(() => calls > 0)
      await announcements.close()
      assert.ok(calls < 50, `${calls} calls`)
    })

    it('that is silent, closes or answers nonsense is connected to again', async () => {
      const first = connections
      let calls = 0
      onConnection = (socket) => {
        if (connections - first === 2) socket.close()
        if (connections - first === 3) for (const text of ['no', '{}', '[1]', '{"method":1}']) socket.send(text)
        if (connections - first === 4) socket.send(head)
      }
      const options = {
        urls: ['ws://127.0.0.1:1', 'ws://127.0.0.1:1/#a-socket-that-cannot-be-made', url],
        onBlock: () => (calls += 1),
        log,
      }
      const announcements = createBlockAnnouncements({ ...options, silentMs: 300, retryMs: 1 })
      await until(() => calls > 0)
      await announcements.close()
      assert.ok(connections - first >= 4)
      assert.doesNotMatch(lines.join('\n'), /127\.0\.0\.1/, 'addresses of providers may hold keys')
    })
  })
})
