import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { snakeCase } from '../../../src/core/settings/computation-rules.ts'

const forms: [name: string, form: string][] = [
  ['VIP Customers', 'vip_customers'],
  ['monthlyActiveUsers', 'monthly_active_users'],
  ['HTTPUsers', 'http_users'],
  ['  High-Value  (EU) ', 'high_value_eu'],
  ['already_snake', 'already_snake'],
  ['Q4Buyers', 'q4_buyers'],
  ['Top 10', 'top_10'],
  ['top10', 'top10'],
  ["Women's Shoes", 'womens_shoes'],
  ['Women’s Shoes', 'womens_shoes'],
  ['Größte Käufer', 'größte_käufer'],
  ['Cafe\u0301 Fans', 'café_fans'],
  ['Лучшие Клиенты', 'лучшие_клиенты'],
  ['ЛучшиеКлиенты', 'лучшие_клиенты'],
  ['重要な顧客', '重要な顧客'],
  ['新しい VIP', '新しい_vip'],
  ['नमस्ते दुनिया', 'नमस्ते_दुनिया'],
  ['عملاء مهمون', 'عملاء_مهمون'],
  ['ＦＵＬＬ width', 'full_width'],
  ['soft\u00adhyphen', 'softhyphen'],
  ['❤️ lovers', 'lovers'],
  ['𝒳 𐐀𐐨', 'x_𐐨𐐨'],
  ['❤️ --- !', ''],
]

for (const [name, form] of forms) {
  test(`the property name of ${JSON.stringify(name)} is ${JSON.stringify(form)}`, () => {
    assert.equal(snakeCase(name), form)
  })
}

test('property: the form of a form is itself, with only letters, marks, digits and single underscores', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (name) => {
      const form = snakeCase(name)
      assert.equal(snakeCase(form), form)
      assert.match(form, /^$|^[\p{L}\p{N}\p{M}]+(_[\p{L}\p{N}\p{M}]+)*$/u)
    }),
  )
})
