import { nthCall } from '../calls.ts'
import { withAndWithout } from './with-and-without.ts'
import { atLeast, atMost } from './workload.ts'

const users = 10_000
const batch = 100
const callOf = (index: number) => nthCall(index, users)

/** Ten holes, half of them of values that lie in the call's maps. */
const template = JSON.stringify({
  kind: '${call.type}',
  name: '${call.event}',
  id: '${call.messageId}',
  customer: { id: '${call.userId}', address: '${call.context.ip}' },
  at: '${iso(call.timestamp)}',
  order: {
    id: '${call.properties.orderId}',
    total: '${call.properties.total}',
    currency: '${lower(call.properties.currency)}',
    products: '${call.properties.products}',
  },
})

export const templates = withAndWithout({
  name: 'templates',
  summary:
    'every body is made of a template with ten holes; reference: the same forwarder with the default body',
  sides: { without: 'the default body', with: 'a template with ten holes' },
  async setUp({ execute }) {
    await execute({ type: 'update_destination', id: 'crm', options: { body: { all: template } } })
  },
  callOf,
  goals: ({ cost }) => [atMost('cost of a template, % of a call’s CPU', cost, 10)],
})

export const batches = withAndWithout({
  name: 'batches',
  summary: `requests hold ${batch} calls each; reference: the same forwarder with a request for each call`,
  sides: { without: 'a request for each call', with: `${batch} calls in a request` },
  async setUp({ execute }) {
    await execute({ type: 'update_destination', id: 'crm', options: { batch } })
  },
  callOf,
  batched: true,
  goals: ({ ratio }) => [atLeast('calls a second, over those without batches', ratio, 4)],
})

/** Nothing fails, so that no call waits for an earlier one. */
export const strictOrder = withAndWithout({
  name: 'strict-order',
  summary: 'a destination with `--order strict` at which nothing fails; reference: the same without',
  sides: { without: 'order of first attempts', with: 'strict order' },
  async setUp({ execute }) {
    await execute({ type: 'update_destination', id: 'crm', options: { order: 'strict' } })
  },
  callOf,
  goals: ({ cost }) => [atMost('cost of strict order, % of a call’s CPU', cost, 5)],
})
