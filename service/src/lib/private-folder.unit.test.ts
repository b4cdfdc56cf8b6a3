import assert from 'node:assert/strict'
import { chmod, mkdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { testFolder } from '../../test/support/folder.ts'
import { closeTree, makeFolder, readOwnFile, readPrivateFile } from './private-folder.ts'

const folder = testFolder()

it('reads a file that is closed to others, within its bound', async () => {
  const path = join(folder, 'secret')
  await writeFile(path, 'abc')
  for (const mode of [0o600, 0o400, 0o440]) {
    await chmod(path, mode)
    assert.equal(await readPrivateFile(path, { maxBytes: 3 }), 'abc')
  }
  assert.equal(await readPrivateFile(path, { maxBytes: 2 }), null)
  for (const mode of [0o604, 0o620, 0o601]) {
    await chmod(path, mode)
    await assert.rejects(readPrivateFile(path, { maxBytes: 3 }), /secret is open to other users: chmod 600 closes it/)
  }
  await assert.rejects(readPrivateFile(join(folder, 'none'), { maxBytes: 3 }), /none cannot be read \(ENOENT\)\.$/)
})

it('makes a folder and those above it, for their owner only', async () => {
  const path = join(folder, 'a', 'b', 'c')
  await Promise.all([makeFolder(path), makeFolder(path), makeFolder(join(folder, 'a', 'd'))])
  for (const made of [path, join(folder, 'a')]) assert.equal((await stat(made)).mode & 0o777, 0o700)
  await mkdir(join(folder, 'open'), { mode: 0o755 })
  await symlink(join(folder, 'open'), join(folder, 'link'))
  for (const name of ['open', 'link']) await makeFolder(join(folder, name))
  assert.equal((await stat(join(folder, 'open'))).mode & 0o777, 0o755)
})

it('makes no folder of a file, of a link to nothing and below /proc', async () => {
  await symlink(join(folder, 'nothing'), join(folder, 'dangling'))
  await assert.rejects(makeFolder(join(folder, 'secret')), { code: 'EEXIST' })
  await assert.rejects(makeFolder(join(folder, 'secret', 'below')), { code: 'ENOTDIR' })
  await assert.rejects(makeFolder(join(folder, 'dangling')), { code: 'EEXIST' })
  await assert.rejects(makeFolder('/proc/touchstone/keys'), { code: 'ENOENT' })
})

it('closes a folder to others, with everything in it and nothing behind a link', async () => {
  const [tree, outside] = [join(folder, 'tree'), join(folder, 'outside')]
  for (const path of [tree, outside]) {
    await mkdir(path)
    await chmod(path, 0o755)
    await writeFile(join(path, 'file'), '')
    await chmod(join(path, 'file'), 0o654)
  }
  await symlink(outside, join(tree, 'link'))
  const modes = async () => {
    const found = await Promise.all([tree, outside].flatMap((path) => [stat(path), stat(join(path, 'file'))]))
    return found.map(({ mode }) => mode & 0o777)
  }
  assert.equal(await closeTree(tree), 2)
  assert.deepEqual(await modes(), [0o700, 0o600, 0o755, 0o654])
  assert.equal(await closeTree(tree), 0)
})

it('says that a file belongs to another user, and reads nothing where there is none', async () => {
  const path = join(folder, 'of another user')
  assert.equal(await readOwnFile(path), null)
  await writeFile(path, 'abc')
  assert.equal(await readOwnFile(path), 'abc')
  await chmod(path, 0)
  await asOrdinaryUser(() =>
    assert.rejects(readOwnFile(path), {
      code: 'INTERNAL',
      message: /may not be read by this user\. Run the program as/,
    }),
  )
})

/** Runs work as a user for whom the modes of files hold. Root reads every file. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    await work()
  } finally {
    process.seteuid?.(0)
  }
}
