/** The volumes of deploy/: that a container or pod that is replaced finds again what it wrote. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { read, readCompose, type Resource, resourcesOf, stagesOf } from '../../support/processes/deploy.ts'

describe('deploy/compose.yaml', () => {
  it('keeps what a service writes into its data folder, in volumes that belong to its user', () => {
    const { services, volumes: kept } = readCompose()
    const of = (name: string) =>
      (services[name]?.volumes ?? [])
        .map((volume) => volume.split(':'))
        .filter(([, path]) => path?.startsWith('/data/'))
    // Imports run where the keys of the roles are. The process that signs passports signs the heads.
    assert.deepEqual(of('graphql'), [
      ['keys', '/data/keys', 'ro'],
      ['imports', '/data/imports'],
    ])
    assert.deepEqual(of('verification'), [
      ['keys', '/data/keys'],
      ['audit', '/data/audit'],
    ])
    assert.deepEqual(of('backup'), [
      ['keys', '/data/keys', 'ro'],
      ['imports', '/data/imports', 'ro'],
    ])
    for (const [name = '', path = ''] of Object.keys(services).flatMap(of)) {
      assert.ok(name in kept, name)
      // A new volume has the owner and the mode of the folder in the image.
      const made = stagesOf(read('deploy/Dockerfile'))
        .at(-1)
        ?.runs.find((line) => line.split(' ').includes(path))
      assert.match(made ?? '', /^install -d -m 700 -o 1000 -g 1000 /, path)
    }
  })

  it('mounts no inline config into a read-only root, which the engine refuses', () => {
    const { services, configs: declared } = readCompose()
    for (const [name, { read_only: isReadOnly, configs = [] }] of Object.entries(services))
      for (const { source } of configs) {
        assert.ok(source in declared, source)
        if (isReadOnly === true) assert.ok(declared[source]?.file !== undefined, `${source} of ${name}`)
      }
  })

  it('bounds what a container may write into its memory, so that a full folder does not end the process', () => {
    const ours = Object.entries(readCompose().services).filter(([, { image }]) => image?.startsWith('touchstone:'))
    assert.ok(ours.length > 0)
    for (const [name, { tmpfs = [], mem_limit: memory }] of ours) {
      const sizes = tmpfs.map((mount) => Number(/[:,]size=(\d+)m(?:,|$)/.exec(mount)?.[1]))
      assert.deepEqual([sizes.length, memory], [2, '1g'], name)
      assert.ok(sizes.reduce((sum, size) => sum + size) <= 512, `${name}: ${tmpfs.join(' ')}`)
    }
  })
})

describe('deploy/kubernetes', () => {
  it('keeps imports and signed heads in the one pod where commands run', () => {
    const all = resourcesOf('deploy/kubernetes/base')
    const mountsOf = ({ spec }: Resource) =>
      spec?.template?.spec.containers.flatMap((one) => one.volumeMounts ?? []) ?? []
    const isKept = ({ mountPath }: { mountPath: string }) => /^\/data\/(?!keys$)/.test(mountPath)
    const [commands, ...others] = all.filter((resource) => mountsOf(resource).some(isKept))
    assert.deepEqual([commands?.metadata.name, others], ['commands', []])
    assert.deepEqual(commands && mountsOf(commands).filter(isKept), [
      { name: 'kept', mountPath: '/data/imports', subPath: 'imports' },
      { name: 'kept', mountPath: '/data/audit', subPath: 'audit' },
    ])
    // The volume is of one node: a second pod would wait for it.
    assert.deepEqual([commands?.spec?.replicas, commands?.spec?.strategy?.type], [1, 'Recreate'])
    const claim = commands?.spec?.template?.spec.volumes?.find(({ name }) => name === 'kept')?.persistentVolumeClaim
    assert.ok(all.some(({ kind, metadata }) => kind === 'PersistentVolumeClaim' && metadata.name === claim?.claimName))
  })
})
