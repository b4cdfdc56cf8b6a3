import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { ConfigError, localUrl, readConfig, readServiceConfig } from './config.ts'
import { configSchema, settings } from './schema.ts'
import { mapSettings, type Setting } from './setting.ts'

/** `message` is the whole text, a pattern, or a check of the error. */
function refuses(env: Readonly<Record<string, string>>, message: string | RegExp | ((error: Error) => boolean)): void {
  const expected = typeof message === 'string' ? new ConfigError(message) : message
  assert.throws(() => readConfig(env), expected, JSON.stringify(env))
}

describe('the configuration', () => {
  it('has a usable default for everything', () => {
    const config = readConfig({})
    assert.equal(config.hosts.verification.port, 8080)
    assert.deepEqual([...config.roles], ['verification', 'graphql', 'indexer'])
    assert.equal(config.chain.maxHeadAgeSeconds, 30)
    assert.equal(config.limits.asset, 60)
    assert.deepEqual(config.chain.rpcUrls, [])
    assert.equal(config.chain.contract, null)
  })

  it('reads lists and gives each block tag its own oldest head', () => {
    const config = readConfig({ CHAIN_RPC_URLS: 'https://a.example, https://b.example', CHAIN_BLOCK_TAG: 'safe' })
    assert.deepEqual(config.chain.rpcUrls, ['https://a.example', 'https://b.example'])
    assert.equal(config.chain.maxHeadAgeSeconds, 600)
  })

  it('names the variable, what it wants and the text found', () => {
    refuses({ VERIFICATION_PORT: '80a' }, 'VERIFICATION_PORT must be a whole number from 0 to 65535; found "80a".')
    refuses({ CHAIN_BLOCK_TAG: 'pending' }, /CHAIN_BLOCK_TAG must be one of latest, safe, finalized; found "pending"/)
    refuses({ CHAIN_CONTRACT: '0x12' }, /CHAIN_CONTRACT must be an address \(0x and 40 hex digits\)/)
    for (const range of ['10.0.0.0/99', '10.0.0.0/', '10.0.0.0/8/24', 'proxy'])
      refuses({ TRUSTED_PROXIES: range }, /TRUSTED_PROXIES must be IP addresses or CIDR ranges/)
  })

  it('names each listener by an address at which it answers', () => {
    for (const all of ['127.0.0.1', '0.0.0.0', '::', '::0', '0:0:0:0:0:0:0:0', 'fe80::1%eth0'])
      assert.equal(localUrl(all, 8080), 'http://127.0.0.1:8080', all)
    assert.equal(localUrl('127.0.0.2', 8080), 'http://127.0.0.2:8080')
    assert.equal(localUrl('192.0.2.7', 0), 'http://192.0.2.7:0')
    assert.equal(localUrl('::1', 8080), 'http://[::1]:8080')
    assert.equal(localUrl('2001:db8::5', 8080), 'http://[2001:db8::5]:8080')
  })

  it('takes no WebSocket URL with a fragment, which cannot be opened', () => {
    for (const text of ['wss://a.example/key#x', 'wss://a.example/#', 'ws://a.example,wss://b.example#'])
      refuses({ CHAIN_WS_URLS: text }, /CHAIN_WS_URLS must be ws or wss URLs without #/)
  })

  it('takes no provider whose password has a % of its own, with which no request can be made', () => {
    const url = 'https://user:pass%25word@a.example/key'
    assert.deepEqual(readConfig({ CHAIN_RPC_URLS: url }).chain.rpcUrls, [url])
    refuses(
      { CHAIN_RPC_URLS: `https://b.example,${url.replace('%25', '%')}` },
      'CHAIN_RPC_URLS must be http or https URLs with a % of a password as %25, separated by commas; found something else.',
    )
  })

  it('shows scheme and host of a wrong URL at most', () => {
    for (const [text, found] of [
      ['https://hidden:hidden@a.example/hidden?hidden', '"https://a.example…"'],
      ['ftp://a.example/hidden', '"ftp://a.example…"'],
      ['https://hidden:hid/den@a.example', '"https://…"'],
      ['ftp://hidden:8/hidden@a.example', '"ftp://…"'],
      ['https://hidden hidden', '"https://…"'],
      ['hidden:hidden@a.example', 'something else'],
    ] as const)
      for (const name of ['BASE_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT'])
        refuses(
          { [name]: text },
          ({ message }: Error) => message.endsWith(`; found ${found}.`) && !message.includes('hidden'),
        )
  })

  it('takes a public URL that is an origin and nothing more', () => {
    for (const [text, origin] of [
      ['https://verify.example', 'https://verify.example'],
      ['https://Verify.Example:443/', 'https://verify.example'],
      ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ])
      assert.equal(readConfig({ BASE_URL: text }).hosts.verification.url, origin)
    for (const text of ['https://a.example/b', 'https://a.example/?b', 'https://u:p@a.example', 'ftp://a.example', 'a'])
      refuses({ BASE_URL: text }, /BASE_URL must be an http or https URL without path/)
  })

  it('takes no user and password in a URL that pages or errors would show', () => {
    for (const name of ['PUBLIC_RPC_URL', 'EXPLORER_URL', 'FACILITATOR_URL'])
      for (const text of ['https://hidden:hidden@a.example/rpc', 'https://hidden@a.example'])
        refuses(
          { [name]: text },
          `${name} must be a URL (http, https) without user and password, or empty; found "https://a.example…".`,
        )
  })

  it('takes no folder with a space at an end, which a start would make anew', () => {
    assert.equal(readConfig({ DATA_DIR: '/var/lib/two words' }).dataDir, '/var/lib/two words')
    for (const text of ['/var/lib/touchstone ', ' data', '', ' '])
      refuses({ DATA_DIR: text }, /^Error: DATA_DIR must be a folder, without spaces at its/)
  })

  it('takes an address once that a list has in two spellings, so that its feedback is not summed twice', () => {
    const [spelled, lower] = [
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
      '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed',
    ]
    assert.deepEqual(readConfig({ AGENT_REVIEWERS: `${spelled}, ${lower}` }).agents.reviewers, [lower])
  })

  it('takes addresses with their right checksum, or without one', () => {
    const checksummed = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    const lower = checksummed.toLowerCase()
    const typo = checksummed.replace('5aAe', '5aAf')
    for (const text of [checksummed, lower]) {
      const config = readConfig({ CHAIN_CONTRACT: text, AGENT_REVIEWERS: text, FACILITATOR_WALLET_FACTORIES: text })
      assert.equal(config.chain.contract, lower)
      assert.deepEqual(config.agents.reviewers, [lower])
      assert.deepEqual(config.gateway.walletFactories, [lower])
    }
    for (const name of ['PAYMENT_PAY_TO', 'CHAIN_CONTRACT', 'AGENT_REVIEWERS', 'FACILITATOR_WALLET_FACTORIES'])
      refuses({ [name]: typo }, new RegExp(`^Error: ${name} must be .* right checksum`))
  })

  it('takes origins of browser pages as browsers send them', () => {
    assert.deepEqual(readConfig({ MCP_ORIGINS: 'https://Chat.Example:443/, *' }).agents.origins, [
      'https://chat.example',
      '*',
    ])
    for (const text of ['https://chat.example/app', 'https://*.example', 'chat.example'])
      refuses({ MCP_ORIGINS: text }, /MCP_ORIGINS must be origins/)
  })

  it('offers proofs of known code only', () => {
    const withHash = { PROOF_BUNDLE: 'on', CHAIN_CODE_HASH: `0x${'ab'.repeat(32)}` }
    assert.equal(readServiceConfig(withHash).proofBundle, true)
    assert.throws(() => readServiceConfig({ PROOF_BUNDLE: 'on' }), /PROOF_BUNDLE=on needs CHAIN_CODE_HASH/)
    assert.equal(readConfig({ PROOF_BUNDLE: 'on' }).proofBundle, true) // of npm start, which finds out the hash
  })

  it('takes the roles of a process', () => {
    assert.deepEqual([...readConfig({ ONLY: 'indexer, graphql' }).roles], ['graphql', 'indexer'])
    for (const all of ['', ' ']) assert.equal(readConfig({ ONLY: all }).roles.size, 3)
    refuses(
      { ONLY: 'graphql,worker' },
      /ONLY must be some of verification, gateway, graphql, indexer, separated by commas; found "graphql,worker"/,
    )
  })

  it('takes the place of the keys, and no key from two places', () => {
    assert.equal(readConfig({}).keys, null)
    const text = 'pkcs11:module=/usr/lib/hsm%3B.so;token=Acme keys;pin-file=/run/pin'
    const all = readConfig({ KEYS: text }).keys
    assert.deepEqual(all?.token, {
      module: '/usr/lib/hsm;.so',
      token: 'Acme keys',
      pinFile: '/run/pin',
      packageFolder: null,
    })
    assert.equal(all?.names.size, 6)
    const some = { KEYS: `${text};keys=operator, issuer;package=/opt/pkcs11js` }
    assert.deepEqual([...(readConfig(some).keys?.names ?? [])], ['operator', 'issuer'])
    const secret = 'c0'.repeat(32)
    assert.doesNotThrow(() => readConfig({ ...some, ATTESTER_KEY: secret }))
    refuses(
      { ...some, OPERATOR_KEY: secret },
      /^Error: OPERATOR_KEY is set, and KEYS places the key operator in the token/,
    )
    const wrong = [
      'pkcs11:',
      'hsm',
      'pkcs11:module=a;token=b',
      `${text};pin=1234`,
      `${text};token=other`,
      `${text};keys=owner`,
      `${text};keys=%20`,
      `${text};package=%`,
    ]
    for (const KEYS of wrong) refuses({ KEYS }, /^Error: KEYS must be file, or pkcs11:module=/)
  })

  it('has a gateway only where there is somebody to pay, and serves it only where somebody settles', () => {
    refuses({ ONLY: 'gateway' }, /The role gateway needs PAYMENT_PAY_TO/)
    const payTo = { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}` }
    assert.throws(() => readServiceConfig(payTo), /FACILITATOR_KEY/)
    assert.ok(readServiceConfig({ ...payTo, FACILITATOR_URL: 'https://x402.example.com' }).roles.has('gateway'))
    const channels = { ...payTo, FACILITATOR_KEY: '34'.repeat(32), PAYMENT_CHANNELS: 'on' }
    assert.throws(() => readServiceConfig(channels), /PAYMENT_CHANNELS=on needs PAYMENT_CHANNEL_KEYS/)
    // A command, and a process of another role, have none of its keys.
    assert.ok(readConfig({ ...payTo, PAYMENT_CHANNELS: 'on' }).roles.has('gateway'))
    assert.equal(readServiceConfig({ ...payTo, PAYMENT_CHANNELS: 'on', ONLY: 'graphql' }).gateway.channels, true)
  })

  it('takes the settings of wallet passes whole, and only where certificates are signed', () => {
    const signing = { PASSPORT_SIGNING: 'on' }
    const google = { GOOGLE_WALLET_ISSUER: '3388', GOOGLE_WALLET_ACCOUNT_FILE: '/run/google.json' }
    const { passport } = readConfig({ ...signing, ...google })
    assert.deepEqual([passport.apple, passport.google?.issuerId], [null, '3388'])
    for (const [env, message] of [
      [google, /^Error: Passes of wallets need PASSPORT_SIGNING=on/],
      [{ ...signing, GOOGLE_WALLET_ISSUER: '3388' }, /^Error: Passes of Google Wallet also need GOOGLE_WALLET_ACC/],
      [
        { ...signing, APPLE_TEAM_ID: 'TEAM123456', APPLE_PASS_KEY_FILE: '/a' },
        /^Error: Passes of Apple Wallet also need APPLE_PASS_TYPE, APPLE_PASS_CERTIFICATE, APPLE_WWDR_CERTIFICATE: set/,
      ],
      [{ ...signing, APPLE_PASS_KEY_PASSWORD_FILE: '/a' }, /^Error: APPLE_PASS_KEY_PASSWORD_FILE is the password of/],
      [{ APPLE_PASS_TYPE: 'com.example' }, /APPLE_PASS_TYPE must be a pass type identifier such as pass\.com/],
      [{ APPLE_TEAM_ID: 'team' }, /APPLE_TEAM_ID must be ten letters/],
      [{ GOOGLE_WALLET_ISSUER: 'me' }, /GOOGLE_WALLET_ISSUER must be up to 20 digits/],
    ] as const)
      refuses(env, message)
  })

  it('takes proofs of the own registry only, whose storage is known', () => {
    const proof = { CHAIN_TRUST: 'proof', CHAIN_CODE_HASH: `0x${'ab'.repeat(32)}`, CHAIN_INTERFACE: 'registry' }
    assert.equal(readConfig(proof).chain.trust, 'proof')
    for (const missing of [{ CHAIN_INTERFACE: 'auto' }, { CHAIN_INTERFACE: 'foreign' }, { CHAIN_CODE_HASH: '' }])
      refuses({ ...proof, ...missing }, /^Error: CHAIN_TRUST=proof needs CHAIN_INTERFACE=registry/)
  })

  it('keeps verdicts by events of the own registry only, which emits one with every write', () => {
    const cacheOf = (env: Readonly<Record<string, string>>) => readConfig(env).chain.cache
    assert.equal(cacheOf({ CHAIN_CACHE: 'events', CHAIN_INTERFACE: 'registry' }), 'events')
    assert.equal(cacheOf({ CHAIN_INTERFACE: 'registry' }), 'events')
    for (const kind of ['auto', 'foreign']) {
      assert.equal(cacheOf({ CHAIN_INTERFACE: kind }), 'head')
      assert.throws(
        () => cacheOf({ CHAIN_CACHE: 'events', CHAIN_INTERFACE: kind }),
        /^Error: CHAIN_CACHE=events needs CHAIN_INTERFACE=registry/,
      )
    }
  })

  it('sends secret headers to a facilitator over https, or on this machine, only', () => {
    const headers = { PAYMENT_PAY_TO: `0x${'12'.repeat(20)}`, FACILITATOR_HEADERS_FILE: '/run/headers.json' }
    for (const url of ['', 'http://x402.example.com', 'http://127.0.0.1.example.com'])
      refuses({ ...headers, FACILITATOR_KEY: `0x${'34'.repeat(32)}`, FACILITATOR_URL: url }, /HEADERS_FILE needs a/)
    for (const url of [
      'https://x402.example.com',
      'http://127.0.0.1:4020',
      'http://localhost:4020',
      'http://[::1]:4020',
    ])
      assert.equal(readConfig({ ...headers, FACILITATOR_URL: url }).gateway.facilitatorHeadersFile, '/run/headers.json')
  })

  it('reads the settings of OpenTelemetry, and sends secret headers to a collector over https, or on this machine, only', () => {
    const headers = { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a%2Cb, x-scope=1' }
    for (const endpoint of ['', 'http://otel.example.com:4318'])
      refuses({ ...headers, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, /OTLP_HEADERS needs an/)
    const { traces } = readConfig({ ...headers, OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example.com/otlp/' })
    assert.equal(traces.endpoint, 'https://otel.example.com/otlp')
    assert.deepEqual(traces.headers, { authorization: 'Bearer a,b', 'x-scope': '1' })
    for (const wrong of ['https://a:b@otel.example.com', 'https://otel.example.com?key=1', 'otel.example.com:4318'])
      refuses({ OTEL_EXPORTER_OTLP_ENDPOINT: wrong }, /OTEL_EXPORTER_OTLP_ENDPOINT must be/)
    for (const wrong of ['Bearer abc', 'a=%0d%0ab: c', 'a b=c', 'a=%zz'])
      refuses({ OTEL_EXPORTER_OTLP_HEADERS: wrong }, /OTEL_EXPORTER_OTLP_HEADERS must be/)
    for (const wrong of ['2', '-0.1', '1.5', 'all']) refuses({ OTEL_TRACES_SAMPLER_ARG: wrong }, /a number from 0 to 1/)
  })

  it('asks twice before it takes a price that default buyers refuse', () => {
    refuses({ PAYMENT_PRICE: '100001' }, /PAYMENT_HIGH_PRICE=on/)
    assert.equal(readConfig({ PAYMENT_PRICE: '100001', PAYMENT_HIGH_PRICE: 'on' }).gateway.price, 100_001n)
  })

  it('never repeats the text of a secret', () => {
    for (const name of ['DATABASE_URL', 'CHAIN_RPC_URLS']) {
      refuses(
        { [name]: 'hunter2' },
        (error: Error) => error.message.includes(name) && !error.message.includes('hunter2'),
      )
    }
  })

  it('takes a list of hosts for the database, which asks for the one that takes writes', () => {
    const list = 'postgres://u@a,b:5433/x?target_session_attrs=read-write'
    assert.equal(readConfig({ DATABASE_URL: list }).store.databaseUrl, list)
    refuses(
      { DATABASE_URL: 'postgres://u@a,b/x' },
      'DATABASE_URL must be a URL (postgres, postgresql), or one of several hosts with ?target_session_attrs=read-write, or empty; found something else.',
    )
  })

  it('reads every secret from a file as well, and nothing else', () => {
    const folder = testFolder()
    const texts: Readonly<Record<string, string>> = {
      DATABASE_URL: 'postgres://127.0.0.1/touchstone',
      DATABASE_DIRECT_URL: 'postgres://127.0.0.3/touchstone',
      DATABASE_READ_URL: 'postgres://127.0.0.2/touchstone',
      REDIS_URL: 'redis://127.0.0.1',
      CHAIN_RPC_URLS: 'https://a.example,https://b.example',
      CHAIN_WS_URLS: 'wss://a.example,ws://b.example/key',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc',
      FACILITATOR_KEYS: `0x${'35'.repeat(32)},0x${'36'.repeat(32)}`,
    }
    const secrets = Object.entries<Setting>(settings).filter(([, { secret }]) => secret)
    assert.ok(secrets.length > 10)
    const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example' }
    const [direct, inFiles]: Record<string, string>[] = [{ ...collector }, { ...collector }]
    assert.ok(direct && inFiles)
    for (const [index, [name]] of secrets.entries()) {
      const text = texts[name] ?? `${(index + 16).toString(16).repeat(31)}01`
      const path = join(folder, name)
      writeFileSync(path, `${text}${index % 2 === 0 ? '\n' : ''}`)
      direct[name] = text
      inFiles[`${name}_FILE`] = path
    }
    assert.deepEqual(readConfig(inFiles), readConfig(direct))
    const TAG_KEK_FILE = inFiles['TAG_KEK_FILE'] ?? ''
    refuses(
      { TAG_KEK: '6b'.repeat(32), TAG_KEK_FILE },
      'TAG_KEK and TAG_KEK_FILE are both set: leave one of them empty.',
    )
    refuses({ TAG_KEK_FILE: join(folder, 'none') }, 'TAG_KEK_FILE names a file that cannot be read (ENOENT).')
    for (const nothing of ['', '\n', ' \r\n']) {
      writeFileSync(join(folder, 'empty'), nothing)
      for (const name of ['DATABASE_URL', 'TAG_KEK', 'CHAIN_RPC_URLS'])
        refuses({ [`${name}_FILE`]: join(folder, 'empty') }, `${name}_FILE names an empty file: write ${name} into it.`)
    }
    writeFileSync(join(folder, 'wrong'), 'hunter2')
    refuses(
      { TAG_KEK_FILE: join(folder, 'wrong') },
      (error: Error) => error.message.includes('TAG_KEK') && !error.message.includes('hunter2'),
    )
    assert.equal(readConfig({ BASE_URL_FILE: TAG_KEK_FILE }).hosts.verification.url, null)
  })

  it('takes no placeholder for a key that seals or hides, but opens what one has sealed', () => {
    const [zeros, example] = ['00'.repeat(32), '0123456789abcdef'.repeat(4)]
    for (const key of [zeros, example, `0x${zeros}`])
      for (const [name, bytes] of [
        ['TAG_KEK', 32],
        ['STATION_KEK', 32],
        ['TAG_PEPPER', '16 to 64'],
      ] as const)
        refuses(
          { [name]: key },
          `${name} must be ${bytes} random bytes in hex (openssl rand -hex 32), or empty; found something else.`,
        )
    const { tap, backupKey } = readConfig({ TAG_KEK_PREVIOUS: zeros, TAG_PEPPER_PREVIOUS: zeros, BACKUP_KEY: zeros })
    for (const key of [tap.previousKek, tap.previousPepper, backupKey]) assert.deepEqual(key, new Uint8Array(32))
  })

  it('is read: code names each place of a setting', () => {
    const source = new URL('../../', import.meta.url).pathname
    const declarations = /-settings\.ts$|config\/schema\.ts$|\.test\.ts$/
    const files = globSync('**/*.ts', { cwd: source }).filter((file) => !declarations.test(file))
    const words = new Set(files.flatMap((file) => readFileSync(source + file, 'utf8').match(/\w+/g)))
    const namesIn = (tree: object): string[] =>
      Object.entries(tree).flatMap(([name, value]) => (typeof value === 'object' ? namesIn(value as object) : [name]))
    // The keys of roles are read by the names of the roles.
    const isRead = (name: string) => words.has(name) || (name.endsWith('Key') && words.has(name.slice(0, -3)))
    const unread = namesIn(mapSettings(configSchema, () => true) as object).filter((name) => !isRead(name))
    assert.deepEqual(unread, [])
  })

  it('explains every setting', () => {
    for (const [name, { help }] of Object.entries(settings)) assert.match(help, /\.$/, name)
  })

  it('counts limits where several processes can, unless it is set otherwise', () => {
    const storeOf = (env: Record<string, string>) => readConfig(env).limits.store
    const [REDIS_URL, DATABASE_URL] = ['redis://127.0.0.1', 'postgres://127.0.0.1/touchstone']
    assert.equal(storeOf({}), 'process')
    assert.equal(storeOf({ DATABASE_URL }), 'postgres')
    assert.equal(storeOf({ DATABASE_URL, REDIS_URL }), 'redis')
    assert.equal(storeOf({ DATABASE_URL, REDIS_URL, RATE_LIMIT_STORE: 'process' }), 'process')
    assert.equal(storeOf({ DATABASE_URL, REDIS_URL, RATE_LIMIT_STORE: 'postgres' }), 'postgres')
    refuses(
      { DATABASE_URL, RATE_LIMIT_STORE: 'redis' },
      'RATE_LIMIT_STORE=redis needs REDIS_URL, or set RATE_LIMIT_STORE=process.',
    )
    refuses({ REDIS_URL, RATE_LIMIT_STORE: 'postgres' }, /RATE_LIMIT_STORE=postgres needs DATABASE_URL/)
  })

  it('takes the URL of a Redis, and shows nothing of a wrong one', () => {
    for (const text of ['redis://127.0.0.1', 'rediss://user:pass%25word@redis.example:6380/2', 'redis://[::1]:6379/'])
      assert.equal(readConfig({ REDIS_URL: text }).limits.redisUrl, text)
    for (const text of [
      'http://user:hidden@redis.example',
      'redis:hidden',
      'redis://user:hidden@/0',
      'redis://user:hidden%@redis.example',
      'redis://user:hidden@redis.example/zero',
      'redis://user:hidden@redis.example/0?a=b',
    ])
      refuses(
        { REDIS_URL: text },
        (error: Error) => /REDIS_URL must be a Redis URL/.test(error.message) && !error.message.includes('hidden'),
      )
  })
})
