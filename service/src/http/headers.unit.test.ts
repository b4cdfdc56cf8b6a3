import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { getHeader } from './headers.ts'

async function requestWith(...fields: readonly string[]): Promise<IncomingMessage> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(['GET / HTTP/1.1', 'Host: a', 'Connection: close', ...fields, '', ''].join('\r\n'))
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
  response.end()
  server.close()
  return request
}

describe('a header', () => {
  it('is found whatever the case of its name', async () => {
    const request = await requestWith('X-Request-ID: 7', 'if-none-match: "a"')
    assert.equal(getHeader(request, 'x-request-id'), '7')
    assert.equal(getHeader(request, 'if-none-match'), '"a"')
    assert.equal(getHeader(request, 'x-request'), undefined)
  })

  it('that was sent twice is joined by a comma', async () => {
    const request = await requestWith(
      'X-Forwarded-For: 1.1.1.1',
      'x-forwarded-for: 2.2.2.2',
      'Set-Cookie: a',
      'Set-Cookie: b',
    )
    assert.equal(getHeader(request, 'x-forwarded-for'), '1.1.1.1, 2.2.2.2')
    assert.equal(getHeader(request, 'set-cookie'), 'a, b')
  })

  it('that is no list keeps its first value', async () => {
    const request = await requestWith('Authorization: Bearer 1', 'Authorization: Bearer 2')
    assert.equal(getHeader(request, 'authorization'), 'Bearer 1')
  })

  it('is not the name of an object member', async () => {
    assert.equal(getHeader(await requestWith(), 'constructor'), undefined)
  })
})
