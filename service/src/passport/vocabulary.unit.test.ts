import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import jsonld from 'jsonld'
import { loaderWith } from '../../test/support/passport/documents.ts'
import { baseUrl, dataOf } from '../../test/support/passport/fixtures.ts'
import { passportContext, vocabularyTerms, unspecifiedFacilityDocument, vocabularyDocument } from './vocabulary.ts'

const wire = (value: unknown): Record<string, unknown> => JSON.parse(JSON.stringify(value))

describe('the context document', () => {
  it('of version 1 never changes', () => {
    assert.deepEqual(wire(passportContext(baseUrl)), dataOf('sample/passport-context-v1.jsonld'))
  })

  it('names the terms of its own host', () => {
    const text = JSON.stringify(passportContext('http://127.0.0.1:8080'))
    assert.ok(text.includes('http://127.0.0.1:8080/ns/passport#AssetStatus'))
    assert.ok(!text.includes('verify.example'))
  })

  it('has no @vocab, which would make a term of every misspelling', () => {
    assert.ok(!JSON.stringify(passportContext(baseUrl)).includes('@vocab'))
  })
})

describe('the vocabulary', () => {
  it('describes every term of the context, with label, comment and range, and no other', () => {
    const iris = [
      ...JSON.stringify(passportContext(baseUrl)).matchAll(/"(https:\/\/verify\.example\/ns\/passport#\w+)"/g),
    ]
    const described = vocabularyDocument(baseUrl)['@graph'].map((term) => term['@id'])
    assert.deepEqual(
      [...new Set(iris.map(([, iri = '']) => iri))].toSorted(),
      described.filter((iri) => !iri.endsWith('#token-id')).toSorted(),
    )
    for (const { term, label, comment, range } of vocabularyTerms) {
      assert.ok(label !== '' && comment.endsWith('.'), term)
      assert.equal(range === undefined, /^[A-Z]/.test(term), term)
    }
  })

  it('is JSON-LD without unknown terms, and so is the unspecified facility', async () => {
    const options = { documentLoader: loaderWith(), safe: true }
    const graph = await jsonld.expand(wire(vocabularyDocument(baseUrl)), options)
    assert.equal(graph.length, vocabularyTerms.length + 1)
    const state = graph.find((node) => node['@id'] === `${baseUrl}/ns/passport#stateCode`)
    assert.deepEqual(state?.['http://www.w3.org/2000/01/rdf-schema#range'], [
      { '@id': 'http://www.w3.org/2001/XMLSchema#integer' },
    ])
    const [facility] = await jsonld.expand(wire(unspecifiedFacilityDocument(baseUrl)), options)
    assert.equal(facility?.['@id'], `${baseUrl}/ns/unspecified-facility`)
  })
})
