/** The pictures that a supplier's document names are files of its folder. */
import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { withImportedPictures } from './pictures.ts'

describe('a document that names pictures', () => {
  const folder = testFolder()
  const documents = join(folder, 'documents')
  const noStore = { store: { pictures: { put: () => assert.fail('it is stored') } } } as never
  const imported = (file: string) => withImportedPictures(noStore, documents, { picture: { file } })

  it('gets none from outside its folder, by its path or by a link', async () => {
    await mkdir(join(documents, 'front'), { recursive: true })
    await writeFile(join(folder, 'private.jpg'), 'a photo of the operator')
    await symlink(join(folder, 'private.jpg'), join(documents, 'linked.jpg'))
    await symlink(folder, join(documents, 'up'))
    for (const file of [
      '../private.jpg',
      join(folder, 'private.jpg'),
      'linked.jpg',
      'up/private.jpg',
      '../none.jpg',
      '..',
    ])
      await assert.rejects(imported(file), /is not in the folder of the document; copy it there\.$/, file)
  })

  it('gets those of its folder and below, also where that is named by a link', async () => {
    await writeFile(join(documents, 'front', '..a.jpg'), 'no picture')
    await symlink(documents, join(folder, 'same'))
    const named = withImportedPictures(noStore, join(folder, 'same'), { drawing: { file: 'front/..a.jpg' } })
    await assert.rejects(named, /^Error: \.\.a\.jpg is no picture that can be stored/)
    await assert.rejects(imported('none.jpg'), /There is no file/)
  })
})
