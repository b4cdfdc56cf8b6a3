/** The files of deploy/: that they name what exists, and that each role starts with exactly what they give it. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { testFolder } from '../../support/folder.ts'
import {
  copiedFiles,
  envOf,
  filesBelow,
  filledIn,
  interpolated,
  read,
  readCompose,
  type Resource,
  resourcesOf,
  root,
  stagesOf,
} from '../../support/processes/deploy.ts'
import { readConfig, readServiceConfig } from '../../../src/app/config/config.ts'
import { settings } from '../../../src/app/config/schema.ts'
import type { Setting } from '../../../src/app/config/setting.ts'

const example = envOf(read('deploy/.env.example'))
const isSetting = (name: string) => name in settings || name === 'NODE_ENV'
const isOfPayments = (name: string) =>
  /^(?:PAYMENT|FACILITATOR|ATTESTATION)_|^GATEWAY_URL$|^COMPOSE_PROFILES$/.test(name)
const has = (program: string) => spawnSync(program, ['--help'], { stdio: 'ignore' }).error === undefined

/** Settings of files that an operator may give, by the role that reads them. ATTESTATION_KEY stands for the keystore. */
const filesOf: Readonly<Record<string, readonly string[]>> = {
  verification: [
    'THEME_DIR',
    'APPLE_PASS_CERTIFICATE',
    'APPLE_PASS_KEY_FILE',
    'APPLE_PASS_KEY_PASSWORD_FILE',
    'APPLE_WWDR_CERTIFICATE',
    'GOOGLE_WALLET_ACCOUNT_FILE',
  ],
  gateway: ['FACILITATOR_HEADERS_FILE'],
  graphql: ['GRAPHQL_PERSISTED'],
}

/** Keys of the Secret of Kubernetes that came later than the others. */
const secretsThatMayBeMissing: ReadonlySet<string> = new Set([
  'TAG_KEK_PREVIOUS',
  'TAG_PEPPER_PREVIOUS',
  'CHAIN_WS_URLS',
  'OTEL_EXPORTER_OTLP_HEADERS',
])

/** Reads these settings as the service does at its start, without any network. */
function accepts(command: readonly string[], env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(env)) assert.ok(isSetting(name), `${name} is no setting`)
  if (command[0] === 'migrate') return
  if (command[0] === 'backup') return assert.equal(readConfig(env).backupKey?.length, 32)
  // A command beside the service sees the environment only: a role among the arguments would be hidden from it.
  assert.deepEqual(command, ['serve'])
  const { roles, store } = readServiceConfig(env)
  if (env['ONLY'] !== undefined) assert.deepEqual([...roles], [env['ONLY']])
  assert.ok(store.databaseUrl !== null)
}

describe('deploy/compose.yaml', () => {
  const { services } = readCompose()
  const ours = Object.entries(services).filter(([, { image }]) => image?.startsWith('touchstone:'))

  it('gives each role settings that it accepts, all of them explained in .env.example', () => {
    assert.deepEqual(
      ours.map(([name]) => name),
      ['migrate', 'verification', 'gateway', 'graphql', 'indexer', 'backup'],
    )
    const values = { ...filledIn(example), GATEWAY_URL: 'https://pay.example.com' }
    for (const [, name = '', rest = ''] of read('deploy/compose.yaml').matchAll(/\$\{(\w+)([^}]*)\}/g))
      if (!rest.startsWith(':-')) assert.ok(name in example, `${name} is not in .env.example`)
    for (const [name, { command, environment, read_only: isReadOnly }] of ours) {
      assert.ok(isReadOnly, name)
      assert.equal(environment?.['ONLY'], command?.[0] === 'serve' ? name : undefined)
      accepts(command ?? [], environmentOf(name, values))
    }
  })

  const environmentOf = (name: string, values: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(services[name]?.environment ?? {}).map(([key, text]) => [key, interpolated(String(text), values)]),
    )

  it('demands nothing of a gateway from those who sell nothing', () => {
    const values = Object.fromEntries(Object.entries(filledIn(example)).filter(([name]) => !isOfPayments(name)))
    for (const name of ['verification', 'graphql', 'indexer']) {
      const env = environmentOf(name, values)
      accepts(['serve'], env)
      assert.deepEqual([env['PAYMENT_PAY_TO'], env['GATEWAY_URL']], ['', ''], name)
    }
    for (const [, name = '', kind] of read('deploy/compose.yaml').matchAll(/\$\{(\w+)(:?\?)/g))
      assert.ok(!isOfPayments(name) || (name === 'COMPOSE_PROFILES' && kind === '?'), `${name} is demanded`)
    const withProfile = Object.entries(services).filter(([, { profiles = [] }]) => profiles.includes('gateway'))
    assert.deepEqual(
      withProfile.map(([name]) => name),
      ['gateway'],
    )
    for (const [name, { depends_on: needed = {} }] of Object.entries(services))
      if ('gateway' in needed) assert.equal(needed['gateway']?.required, false, name)
    assert.doesNotMatch(read('deploy/nginx/touchstone.conf'), /touchstone_gateway\b(?!\.conf)|pay\.example\.com/)
  })

  it('starts nothing with an .env that does not say whether there is a gateway, as one from before', () => {
    assert.match(read('deploy/compose.yaml'), /\$\{COMPOSE_PROFILES\?/)
    assert.equal(example['COMPOSE_PROFILES'], '')
  })

  it('starts no gateway that lacks its name, its address or a key', () => {
    const values = { ...filledIn(example), GATEWAY_URL: 'https://pay.example.com', FACILITATOR_KEYS: '' }
    accepts(['serve'], environmentOf('gateway', values))
    for (const name of ['GATEWAY_URL', 'PAYMENT_PAY_TO', 'ATTESTATION_KEY', 'FACILITATOR_KEY'])
      assert.throws(
        () => readServiceConfig(environmentOf('gateway', { ...values, [name]: '' })),
        new RegExp(name),
        name,
      )
  })

  it('gives the gateway a name at nginx only where it runs', () => {
    const folder = testFolder()
    const { command = [] } = services['nginx'] ?? {}
    const shell = (command[2] ?? '')
      .replaceAll('$$', '$')
      .replaceAll('/var/log/nginx/', `${folder}/`)
      .replaceAll('/etc/nginx/', `${folder}/`)
      .replace(/exec nginx.*/, `ls ${folder}/conf.d`)
    const served = (profiles: string) => {
      for (const name of ['gateway', 'conf.d']) mkdirSync(join(folder, name), { recursive: true })
      for (const name of ['touchstone_gateway.conf', 'upstream.conf']) writeFileSync(join(folder, 'gateway', name), '')
      const env = { ...process.env, COMPOSE_PROFILES: profiles }
      return execFileSync('sh', ['-c', shell], { encoding: 'utf8', env }).split('\n').filter(Boolean)
    }
    for (const profiles of ['', 'backup']) assert.deepEqual(served(profiles), [], profiles)
    for (const profiles of ['gateway', 'backup, gateway', '*'])
      assert.deepEqual(served(profiles), ['touchstone_gateway.conf', 'upstream.conf'], profiles)
    // nginx takes the first server of all files for a request that names no host.
    assert.deepEqual(['touchstone_gateway.conf', 'touchstone.conf'].sort()[0], 'touchstone.conf')
  })

  it('gives each role no more than its keys, and each container limits', () => {
    const keysOf = (name: string) => (services[name]?.volumes ?? []).filter((volume) => volume.startsWith('keys:'))
    for (const name of ['migrate', 'gateway', 'indexer']) assert.deepEqual(keysOf(name), [], name)
    for (const name of ['graphql', 'backup']) assert.deepEqual(keysOf(name), ['keys:/data/keys:ro'], name)
    assert.deepEqual(keysOf('verification'), ['keys:/data/keys'])
    for (const [name, { logging, mem_limit: memory }] of Object.entries(services)) {
      assert.equal(logging?.options['max-size'], '10m', name)
      if (ours.some(([own]) => own === name)) assert.equal(memory, '1g', name)
    }
  })

  it('shows nginx the address of each client, and keeps its logs bounded', () => {
    const { ports = [], command = [] } = services['nginx'] ?? {}
    assert.ok(ports.length > 0)
    for (const port of ports) assert.match(port, /^0\.0\.0\.0:/)
    // The log of a server replaces that of nginx.conf; a log of all servers is written beside it.
    const files = ['touchstone.conf', 'touchstone_gateway.conf'].map((name) => read(`deploy/nginx/${name}`))
    for (const server of files.flatMap((text) => text.split(/^server \{$/m).slice(1)))
      for (const log of [/^  access_log (\S+?)(?: touchstone)?;$/m, /^  error_log (\S+) crit;$/m]) {
        const file = log.exec(server)?.[1]
        if (file !== 'off') assert.match(command.join(' '), new RegExp(`ln -sf /dev/std(?:out|err) ${file} `))
      }
  })

  it('has a folder of files for each role that reads some, and the settings of them', () => {
    for (const [role, { volumes = [], environment = {} }] of ours) {
      const named = Object.values(filesOf).flat()
      assert.deepEqual(new Set(named.filter((name) => name in environment)), new Set(filesOf[role]), role)
      const folders = volumes.filter((volume) => volume.includes('/files'))
      assert.deepEqual(folders, role in filesOf ? [`\${FILES:-./files}/${role}:/files:ro`] : [], role)
    }
  })

  it('names every secret in .env.example, and no role has a key that it does not use', () => {
    const secrets = Object.entries<Setting>(settings).flatMap(([name, { secret }]) => (secret ? [name] : []))
    // The first three are made of others by compose.yaml, which has no replica; the last three are of no service.
    const made = ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'REDIS_URL']
    const elsewhere = [...made, 'DATABASE_READ_URL', 'STATION_KEK', 'STATION_KEK_PREVIOUS', 'PAYER_KEY']
    for (const name of secrets) assert.ok(name in example || elsewhere.includes(name), `${name} is not in .env.example`)
    const keysOf = (role: string) =>
      Object.keys(services[role]?.environment ?? {}).filter((name) => /_KEY$|_KEK$|_PEPPER$/.test(name))
    assert.deepEqual(keysOf('indexer'), [])
    assert.deepEqual(keysOf('backup'), ['BACKUP_KEY'])
    assert.deepEqual(keysOf('verification').toSorted(), ['TAG_KEK', 'TAG_PEPPER'])
    assert.deepEqual(keysOf('gateway').toSorted(), ['ATTESTATION_KEY', 'FACILITATOR_KEY'])
    const roleKeys = ['ISSUER_KEY', 'BINDER_KEY', 'QA_KEY', 'GUARDIAN_KEY', 'RECYCLER_KEY', 'RELAYER_KEY']
    const writing = [...roleKeys, 'ATTESTER_KEY', 'OPERATOR_KEY', 'TAG_KEK', 'TAG_PEPPER']
    assert.deepEqual(keysOf('graphql').toSorted(), writing.toSorted())
  })
})

describe('deploy/kubernetes', () => {
  const values = 'deploy/kubernetes/overlays/production'
  const all = ['base', 'components/gateway'].flatMap((folder) => resourcesOf(`deploy/kubernetes/${folder}`))
  const shared = envOf(read(`${values}/settings.env`))
  const secrets = envOf(read(`${values}/secrets.env.example`))

  it('gives each role settings that it accepts', () => {
    const containers = all.flatMap(({ spec, metadata }) =>
      (spec?.template?.spec.containers ?? []).map((container) => ({ role: metadata.name, ...container })),
    )
    const ours = containers.filter(({ name }) => name === 'touchstone')
    assert.equal(ours.length, 6)
    // Settings of one role that an operator may switch on stand in the ConfigMap of all.
    const payments = { GATEWAY_URL: 'https://pay.example.com', PAYMENT_PAY_TO: '', PAYMENT_CHANNELS: 'on' }
    const switchedOn = (role: string) => ({ ...shared, ...(role === 'gateway' && payments) })
    for (const { role, args, env = [], envFrom = [] } of ours) {
      const own = env.map(({ name, value }) => {
        assert.ok(value !== undefined || name in secrets, `${name} is not in secrets.env.example`)
        return [name, value ?? secrets[name] ?? ''] as const
      })
      const given = filledIn({ ...(envFrom.length > 0 && switchedOn(role)), ...Object.fromEntries(own) })
      assert.equal(given['ONLY'], args[0] === 'serve' ? (role === 'commands' ? 'verification' : role) : undefined)
      accepts(args, given)
    }
  })

  it('gives each role the secrets that compose.yaml gives it', () => {
    const { services } = readCompose()
    const isSecret = (name: string) => (settings as Readonly<Record<string, Setting>>)[name]?.secret === true
    for (const { metadata, spec } of all) {
      const container = spec?.template?.spec.containers.find(({ args }) => args?.[0] === 'serve')
      if (container === undefined) continue
      const env = (container.env ?? []).filter(({ value }) => value === undefined)
      const given = env.map(({ name }) => name)
      // The pod of the commands writes to the chain as graphql does.
      const { environment = {} } = services[metadata.name === 'commands' ? 'graphql' : metadata.name] ?? {}
      const wanted = Object.keys(environment).filter(isSecret)
      assert.deepEqual(given.toSorted(), wanted.toSorted(), metadata.name)
      // A Secret of an earlier release has no such key: its pods must start all the same.
      for (const { name, valueFrom } of env)
        assert.equal(valueFrom?.secretKeyRef?.optional ?? false, secretsThatMayBeMissing.has(name), name)
    }
  })

  it('mounts the files of each role that reads some, which need not exist', () => {
    for (const { metadata, spec } of all) {
      const pod = spec?.template?.spec
      if (pod === undefined) continue
      const role = metadata.name === 'commands' ? 'verification' : metadata.name
      const mounts = pod.containers.flatMap(({ volumeMounts = [] }) => volumeMounts)
      const files = mounts.filter(({ mountPath }) => mountPath === '/files')
      assert.deepEqual(files, role in filesOf ? [{ name: 'files', mountPath: '/files', readOnly: true }] : [], role)
      const secret = pod.volumes?.find(({ name }) => name === 'files')?.secret
      assert.deepEqual(
        [secret?.secretName, secret?.optional],
        role in filesOf ? [`touchstone-${role}-files`, true] : [undefined, undefined],
        role,
      )
    }
  })

  describe('is made by kustomize', { skip: has('kubectl') ? false : 'no kubectl' }, () => {
    const folder = testFolder()
    before(() => {
      cpSync(join(root, 'deploy/kubernetes'), folder, { recursive: true })
      for (const name of ['production/secrets.env', 'production/users.txt', 'citus/database.env'])
        writeFileSync(join(folder, 'overlays', name), read(`deploy/kubernetes/overlays/${name}.example`))
    })
    const made = (overlay: string) => {
      const text = execFileSync('kubectl', ['kustomize', join(folder, 'overlays', overlay)], {
        encoding: 'utf8',
        timeout: 240_000,
      })
      return parseAllDocuments(text).map((document) => document.toJS() as Resource)
    }
    const podsOf = (resources: readonly Resource[]) => resources.flatMap(({ spec }) => spec?.template?.spec ?? [])
    const hardened = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } }

    const overlayFile = join(folder, 'overlays/production/kustomization.yaml')
    /** Includes the gateway in the installation, or takes it out. */
    const sell = (isSelling: boolean) =>
      writeFileSync(
        overlayFile,
        readFileSync(overlayFile, 'utf8').replace(/^(?:# )?(?=components: )/m, isSelling ? '' : '# '),
      )
    const settingsFile = join(folder, 'overlays/production/settings.env')

    for (const [overlay, isSelling, count] of [
      ['production', false, 6],
      ['production', true, 7],
      ['citus', false, 8],
    ] as const)
      it(`into the hardened pods of ${overlay}${isSelling ? ' with a gateway' : ''}`, () => {
        sell(isSelling)
        const text = readFileSync(settingsFile, 'utf8').replace(/^(?:# )?(?=GATEWAY_URL=)/m, isSelling ? '' : '# ')
        writeFileSync(settingsFile, text)
        const resources = made(overlay)
        assert.equal(
          resources.some(({ metadata }) => metadata.name === 'gateway'),
          isSelling,
        )
        const pods = podsOf(resources)
        assert.equal(pods.length, count)
        for (const { containers, initContainers = [], securityContext } of pods) {
          assert.equal(securityContext?.runAsNonRoot, true)
          for (const container of [...containers, ...initContainers])
            assert.deepEqual(container.securityContext, hardened, container.name)
        }
        for (const kind of ['Ingress', 'NetworkPolicy', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Service'])
          assert.ok(
            resources.some((one) => one.kind === kind),
            kind,
          )
      })

    it('with the values of an installation', () => {
      sell(true)
      const own = readFileSync(settingsFile, 'utf8').replaceAll('.example.com', '.shop.test')
      writeFileSync(settingsFile, own.replace(/^# (?=GATEWAY_URL=)/m, ''))
      const sizeFile = join(folder, 'overlays/production/size.yaml')
      writeFileSync(sizeFile, readFileSync(sizeFile, 'utf8').replace('maxReplicas: 20', 'maxReplicas: 7'))
      const resources = made('production')
      const specOf = (kind: string, name: string) =>
        resources.find((one) => one.kind === kind && one.metadata.name === name)?.spec as Record<string, unknown>
      const { rules, tls } = specOf('Ingress', 'touchstone') as {
        rules: { host: string }[]
        tls: { hosts: string[] }[]
      }
      const names = ['verify.shop.test', 'pay.shop.test', 'graphql.shop.test']
      assert.deepEqual([rules.map(({ host }) => host), tls[0]?.hosts], [names, names])
      assert.equal(specOf('HorizontalPodAutoscaler', 'verification')['maxReplicas'], 7)
      sell(false)
      const without = made('production').find(({ kind }) => kind === 'Ingress')?.spec as unknown as { rules: object[] }
      assert.deepEqual(without.rules, [rules[0], rules[2]])
    })

    it('with a cluster that the migration joins first', () => {
      const migrate = made('citus').find(({ kind, metadata }) => kind === 'Job' && metadata.name === 'migrate')
      const pod = migrate?.spec?.template?.spec
      assert.deepEqual(
        pod?.containers.map(({ args }) => args),
        [['migrate', '--distribute']],
      )
      assert.deepEqual(
        pod?.initContainers?.map(({ name }) => name),
        ['join'],
      )
    })
  })
})

describe('settings of files', () => {
  it('have a line in each example', () => {
    const isFile = ({ help }: Setting) => /^(?:File|Folder|JSON file|PEM file)\b/.test(help)
    const names = Object.entries<Setting>(settings).flatMap(([name, one]) => (isFile(one) ? [name] : []))
    const elsewhere = ['DATA_DIR', 'ATTESTATION_KEYSTORE_PASSWORD_FILE']
    assert.deepEqual(new Set(names), new Set([...Object.values(filesOf).flat(), ...elsewhere]))
    for (const file of [
      'deploy/.env.example',
      'deploy/kubernetes/overlays/production/settings.env',
      'deploy/systemd/touchstone.env.example',
    ])
      for (const name of Object.values(filesOf).flat()) assert.match(read(file), new RegExp(`^# ${name}=/`, 'm'), file)
  })
})

describe('the commands of documents and files of deploy/', () => {
  it('have no secret among their arguments, which every user of a machine can list', () => {
    const secrets = Object.entries<Setting>(settings).flatMap(([name, { secret }]) => (secret ? [name] : []))
    const argument = new RegExp(`\\b(?:sudo|env|systemd-run|docker)\\b[^\`\\n|]*\\b(${secrets.join('|')})=`, 'g')
    const found = [...filesBelow('docs'), ...filesBelow('deploy'), 'README.md']
      .filter((path) => /\.(?:md|yaml|yml|service|example|sh)$/.test(path))
      .flatMap((path) => [...read(path).matchAll(argument)].map(([text]) => `${path}: ${text}`))
    assert.deepEqual(found, [])
  })
})

describe('deploy/systemd', () => {
  it('starts with the settings of its example', () => {
    const unit = read('deploy/systemd/touchstone.service')
    const own = /^Environment=(.+)$/m.exec(unit)?.[1] ?? ''
    const env = { ...envOf(own.replaceAll(' ', '\n')), ...envOf(read('deploy/systemd/touchstone.env.example')) }
    accepts(['serve'], filledIn(env))
    const unpaid = Object.entries(filledIn(env)).filter(([name]) => !isOfPayments(name))
    accepts(['serve'], Object.fromEntries(unpaid))
    assert.match(unit, /^Type=notify$/m)
    assert.match(unit, /^NotifyAccess=all$/m) // systemd-notify is not the main process
    assert.match(unit, /^StartLimitIntervalSec=0$(?=[^[]*^\[Service\]$)/m) // a start that fails is always tried again
    assert.match(unit, /^TimeoutStartSec=infinity$/m) // a migration may take longer than the default
    assert.match(unit, /^SuccessExitStatus=143$/m) // of a stop during the start
  })

  const skip = has('systemd-analyze') ? false : 'no systemd-analyze'
  it('has a unit that systemd understands, and little that it may do', { skip }, () => {
    const folder = testFolder()
    const unit = read('deploy/systemd/touchstone.service')
      .replace('/usr/bin/node', process.execPath)
      .replaceAll('/opt/touchstone', root)
    const path = join(folder, 'touchstone.service')
    writeFileSync(path, unit)
    const analyze = (...args: string[]) =>
      spawnSync('systemd-analyze', [...args, path], { encoding: 'utf8', timeout: 240_000 })
    const verified = analyze('verify', '--man=no')
    assert.equal(verified.status, 0, verified.stderr)
    assert.doesNotMatch(verified.stderr, /touchstone\.service/)
    const security = analyze('security', '--offline=true', '--no-pager', '--threshold=20')
    assert.equal(security.status, 0, security.stdout + security.stderr)
  })
})

describe('the program without its development packages', () => {
  it('imports none of them', () => {
    const files = [...copiedFiles('service/src'), ...copiedFiles('verdict/src'), 'deploy/healthcheck.ts']
    assert.ok(files.length > 200)
    for (const file of files.filter((name) => name.endsWith('.ts'))) {
      const manifest = file.startsWith('verdict/') ? 'verdict/package.json' : 'service/package.json'
      const { dependencies } = JSON.parse(read(manifest)) as { dependencies: Record<string, string> }
      for (const [, name = ''] of read(file).matchAll(/^(?:import|export|\}).*?\bfrom '((?:@[^/']+\/)?[^./'][^/']*)/gm))
        assert.ok(
          name.startsWith('node:') || name === '@touchstone' || name === '@touchstone/verdict' || name in dependencies,
          `${file} imports ${name}`,
        )
    }
  })

  it('is copied whole into the image, and nothing else', () => {
    const stages = stagesOf(read('deploy/Dockerfile'))
    const copied = stages.flatMap(({ copies }) => copies.flatMap(({ from, sources }) => (from === null ? sources : [])))
    const files = copied.flatMap(copiedFiles)
    for (const path of ['service/src/cli.ts', 'service/openapi.yaml', 'verdict/src/index.ts', 'docs/index.md'])
      assert.ok(files.includes(path), path)
    assert.deepEqual(
      files.filter((name) => /\.test\.ts$|\/_|\.env$|^deploy\/(?!healthcheck\.ts)/.test(name)),
      [],
    )
    assert.equal(stages.at(-1)?.user, '1000:1000')
    for (const name of Object.keys(stages.at(-1)?.env ?? {})) assert.ok(isSetting(name), name)
  })
})
