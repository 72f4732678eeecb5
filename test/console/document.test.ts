import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { apiDocument } from '../../src/console/document.ts'
import { rolesTable } from '../../scripts/roles-table.ts'
import { operations } from '../../src/operators/operations.ts'
import { root } from '../support/docs.ts'

type Json = Record<string, unknown>
const document = () =>
  apiDocument(operations, '1.2.3') as { openapi: string; paths: Record<string, Json> } & Json

test('the document is valid OpenAPI 3.1, and its references resolve', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(document())
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
  assert.ok(validator.resolveRefs())
  const refs = [...JSON.stringify(document()).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)]
  const { schemas } = document().components as { schemas: Json }
  assert.ok(refs.length > 20)
  for (const [, name] of refs) assert.ok(name! in schemas, name)

  const wrong = document()
  wrong.paths['/api/v1/sources'] = { get: { responses: 7 } }
  assert.ok(!(await new Validator().validate(wrong)).valid, 'a wrong one is told from it')
})

test('every operation is in the document, with a unique id and its parameters', () => {
  interface Documented {
    operationId: string
    requestBody?: Json
    parameters?: Json[]
    responses: Json
  }
  const { paths } = document() as unknown as { paths: Record<string, Record<string, Documented>> }
  const documented = Object.values(paths).flatMap((methods) => Object.values(methods))
  assert.equal(documented.length, operations.length)
  assert.equal(new Set(documented.map(({ operationId }) => operationId)).size, operations.length)
  for (const { id, method, path, body, streams } of operations) {
    const found = paths[`/api/v1${path}`]![method.toLowerCase()]!
    assert.equal(found.operationId, id)
    assert.equal('requestBody' in found, Boolean(body ?? streams), id)
    for (const status of [408, 413, 415])
      assert.equal(status in found.responses, Boolean(body ?? streams), `${id}: ${status}`)
    const inPath = (found.parameters ?? []).filter((parameter) => parameter.in === 'path')
    assert.equal(inPath.length, path.split('{').length - 1, id)
  }
})

test('the roles in docs/admin-api.md are those of the operations', () => {
  const page = readFileSync(join(root, 'docs/admin-api.md'), 'utf8')
  const table = /<!-- roles -->(.*)<!-- \/roles -->/s.exec(page)?.[1]?.trim()
  assert.equal(table, rolesTable(), 'run `node scripts/generate-docs.ts`')
})
