/** Items on PGlite and on PostgreSQL. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { testDatabases } from '../../support/database/databases.ts'
import { useOpened } from '../../support/opened.ts'
import { itemRefusals, itemStore } from '../../../src/assets/items.ts'
import { tagStore } from '../../../src/tap/tag-registry.ts'

const gtin = '09506000134352'

for (const { name, open, skip } of testDatabases()) {
  describe(`items on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const items = itemStore(database)

    it('are found by token and by GTIN with serial, each case of a letter apart', async () => {
      const tokenId = 2n ** 256n - 1n
      assert.deepEqual(await items.register({ tokenId, gtin, serial: 'a/B"%+?' }), { ok: true, created: true })
      assert.deepEqual(await items.itemOfToken(tokenId), { gtin, serial: 'a/B"%+?' })
      assert.equal(await items.tokenOfItem({ gtin, serial: 'a/B"%+?' }), tokenId)
      assert.equal(await items.tokenOfItem({ gtin, serial: 'a/b"%+?' }), null)
      assert.equal(await items.itemOfToken(5n), null)
      assert.deepEqual([await items.hasGtin(gtin), await items.hasGtin('00000000000000')], [true, false])
    })

    it('are registered once; the same again changes nothing', async () => {
      const one = { tokenId: 1n, gtin, serial: 'one' }
      assert.deepEqual(await items.register(one), { ok: true, created: true })
      assert.deepEqual(await items.register(one), { ok: true, created: false })
      const refusals = [
        [{ ...one, serial: 'two' }, 'token_taken'],
        [{ ...one, tokenId: 2n }, 'item_taken'],
        [{ ...one, tokenId: -1n }, 'not_token'],
        [{ ...one, tokenId: 2n ** 256n }, 'not_token'],
        [{ tokenId: 3n, gtin: '09506000134353', serial: 'x' }, 'not_gtin'],
        [{ tokenId: 3n, gtin: '9506000134352', serial: 'x' }, 'not_gtin'],
        [{ tokenId: 3n, gtin, serial: '.' }, 'not_serial'],
        [{ tokenId: 3n, gtin, serial: '..' }, 'not_serial'],
        [{ tokenId: 3n, gtin, serial: 'x'.repeat(21) }, 'not_serial'],
        [{ tokenId: 3n, gtin, serial: '' }, 'not_serial'],
        [{ tokenId: 3n, gtin, serial: 'x\n' }, 'not_serial'],
      ] as const
      for (const [item, because] of refusals) {
        assert.deepEqual(
          await items.register(item),
          { ok: false, because, message: itemRefusals[because] },
          item.serial,
        )
      }
      assert.deepEqual(await items.itemOfToken(1n), { gtin, serial: 'one' })
      assert.equal(await items.itemOfToken(3n), null)
    })

    it('give one GTIN and serial to one of several tokens that ask at once', async () => {
      const asked = [21n, 22n, 23n, 24n].map((tokenId) => items.register({ tokenId, gtin, serial: 'race' }))
      const answers = await Promise.all(asked)
      assert.equal(answers.filter(({ ok }) => ok).length, 1)
      for (const answer of answers) if (!answer.ok) assert.equal(answer.because, 'item_taken')
    })

    it('are the same whether a tag or its token named them', async () => {
      const uid = Uint8Array.of(4, 1, 2, 3, 4, 5, 6)
      await items.register({ tokenId: 31n, gtin, serial: 'minted' })
      const tags = tagStore(database)
      await tags.importTag({ uid, epoch: 0, batchId: 'a', tokenId: 31n })
      assert.equal((await tags.tagOfUid(uid))?.serial, 'minted')
      assert.deepEqual((await tags.tagsOfItems([{ gtin, serial: 'minted' }]))[0]?.uid, uid)
      await tags.importTag({ uid, epoch: 0, batchId: 'a', tokenId: 31n, gtin, serial: 'corrected' })
      assert.deepEqual(await items.itemOfToken(31n), { gtin, serial: 'corrected' })
      await tags.importTag({ uid, epoch: 1, batchId: 'a', tokenId: 31n })
      assert.equal((await tags.tagsOfItems([{ gtin, serial: 'corrected' }]))[0]?.epoch, 1)
    })

    it('have a GTIN exactly when its check digit is right, and a serial exactly of CSET 82', async () => {
      const digits = fc.stringMatching(/^[0-9]{13}$/)
      let tokenId = 1_000n
      await fc.assert(
        fc.asyncProperty(digits, fc.nat(9), async (first, last) => {
          const answer = await items.register({ tokenId: (tokenId += 1n), gtin: `${first}${last}`, serial: 's' })
          assert.equal(answer.ok, checkDigitOf(first) === last, `${first}${last}`)
        }),
        { numRuns: 30 },
      )
      for (const code of [...Array(0x80).keys(), 0x2028, 0xd800]) {
        const serial = `x${String.fromCharCode(code)}`
        const answer = await items.register({ tokenId: (tokenId += 1n), gtin, serial })
        assert.equal(answer.ok, cset82.includes(String.fromCharCode(code)), `character ${code}`)
      }
    })
  })
}

/** GS1 General Specifications, figure 7.11-1. */
const cset82 = `!"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz`

function checkDigitOf(digits: string): number {
  const sum = Array.from(digits).reduce((total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 3 : 1), 0)
  return (10 - (sum % 10)) % 10
}
