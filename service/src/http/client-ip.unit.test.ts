import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clientKeys, createTrust } from './client-ip.ts'

describe('the client of a request', () => {
  const direct = clientKeys([])
  const proxied = clientKeys(['10.0.0.0/8', '::1'])

  it('is the peer address, an IPv4 one without its IPv6 wrapping', () => {
    assert.equal(direct('192.0.2.7', undefined), '192.0.2.7')
    assert.equal(direct('::ffff:192.0.2.7', undefined), '192.0.2.7')
  })

  it('is the /64 of an IPv6 address, however it is written', () => {
    const key = '2001:db8:0:7::/64'
    for (const address of [
      '2001:db8:0:7::1',
      '2001:db8:0:7:ffff::9',
      '2001:db8::7:0:0:0:1',
      '2001:0db8:0000:0007:1:2:3:4',
      '2001:DB8:0:7::1%eth0',
    ]) {
      assert.equal(direct(address, undefined), key, address)
    }
    assert.notEqual(direct('2001:db8:0:8::1', undefined), key)
    assert.equal(direct('::1', undefined), '0:0:0:0::/64')
  })

  it('is not changed by X-Forwarded-For of an unknown peer', () => {
    assert.equal(direct('192.0.2.7', '203.0.113.1'), '192.0.2.7')
    assert.equal(proxied('192.0.2.7', '203.0.113.1'), '192.0.2.7')
  })

  it('is the last address in X-Forwarded-For that is no proxy of ours', () => {
    assert.equal(proxied('10.1.1.1', '203.0.113.1'), '203.0.113.1')
    assert.equal(proxied('10.1.1.1', '198.51.100.9, 203.0.113.1, 10.2.2.2'), '203.0.113.1')
    assert.equal(proxied('::1', '2001:db8::5'), '2001:db8:0:0::/64')
  })

  it('ignores what a client wrote in front of a text that is no address', () => {
    assert.equal(proxied('10.1.1.1', '203.0.113.1, <script>'), '10.1.1.1')
    assert.equal(proxied('10.1.1.1', '203.0.113.1, nonsense, 10.2.2.2'), '10.2.2.2')
  })

  it('is the address as proxies write it: with a port, in brackets or in quotes', () => {
    for (const hop of ['203.0.113.7:49152', '203.0.113.7', '"203.0.113.7:80"', ' 203.0.113.7:1 '])
      assert.equal(proxied('10.1.1.1', hop), '203.0.113.7', hop)
    for (const hop of ['[2001:db8::5]:443', '"[2001:db8::5]"', '[2001:db8::5]', '"2001:db8::5"', '"[2001:db8::5]:443"'])
      assert.equal(proxied('10.1.1.1', hop), '2001:db8:0:0::/64', hop)
    assert.equal(proxied('10.1.1.1', '203.0.113.7:49152, 10.2.2.2:80'), '203.0.113.7')
    for (const hop of ['203.0.113.7:', '203.0.113.7:x', '[203.0.113.7', '[2001:db8::5]x', '2001:db8::5]', ':80', '[]'])
      assert.equal(proxied('10.1.1.1', hop), '10.1.1.1', hop)
  })

  it('is an IPv4 address however IPv6 wraps it', () => {
    const wrapped = ['::FFFF:203.0.113.7', '::ffff:cb00:7107', '0:0:0:0:0:ffff:CB00:7107', '64:ff9b::203.0.113.7']
    for (const address of [...wrapped, '64:FF9B::cb00:7107', '0064:ff9b:0:0:0:0:203.0.113.7']) {
      assert.equal(direct(address, undefined), '203.0.113.7', address)
      assert.equal(proxied('10.1.1.1', `[${address}]:443`), '203.0.113.7', address)
      assert.equal(
        proxied(address.replaceAll(/203.0.113.7/g, '10.1.1.1').replaceAll(/cb00:7107/gi, 'a01:101'), '198.51.100.9'),
        '198.51.100.9',
      )
      assert.ok(createTrust(['203.0.113.0/24'])(address), address)
    }
    for (const other of ['64:ff9b:1::cb00:7107', '::1:ffff:cb00:7107', '::cb00:7107', '64:ff9b::1:cb00:7107'])
      assert.match(direct(other, undefined), /::\/64$/, other)
  })

  it('is looked for in the last 2,000 characters of X-Forwarded-For', () => {
    const behind = (proxies: number) => proxied('10.1.1.1', `203.0.113.1${', 10.2.2.2'.repeat(proxies)}`)
    assert.deepEqual([behind(198), behind(200)], ['203.0.113.1', '10.2.2.2'])
  })

  it('is noted where a proxy names it by no address', () => {
    let notes = 0
    const noting = clientKeys(['10.0.0.0/8'], () => (notes += 1))
    noting('10.1.1.1', '203.0.113.7:80')
    noting('192.0.2.7', 'nonsense')
    noting('10.1.1.1', undefined)
    noting('10.1.1.1', 'nonsense, 203.0.113.7')
    assert.equal(notes, 0)
    noting('10.1.1.1', 'unknown')
    assert.equal(notes, 1)
  })

  it('refuses a proxy setting that is no range', () => {
    for (const text of [
      'example.com',
      '',
      '/8',
      '10.0.0.0/',
      '10.0.0.0/0x8',
      '10.0.0.0/ 8',
      '10.0.0.0/1e1',
      '10.0.0.0/8/24',
    ])
      assert.throws(() => clientKeys([text]), new RangeError(`"${text}" is not an address or CIDR range.`))
    for (const text of ['10.0.0.0/33', '::/129']) assert.throws(() => clientKeys([text]), RangeError)
  })
})
