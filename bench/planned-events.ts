/** Events of a tracking plan's benchmark. */
export const eventCount = 100

/** Of the nth call. */
export const eventOf = (index: number): string => `Event ${index % eventCount}`

/** Of the properties of `nthCall`, with a pattern, an enum, a bound and a list, and one that only this event has. */
const propertiesOf = (index: number) => ({
  type: 'object',
  required: ['orderId', 'total', 'currency'],
  properties: {
    orderId: { type: 'string', pattern: '^order-[0-9]+$' },
    total: { type: 'number', minimum: 0 },
    currency: { enum: ['EUR', 'USD', 'GBP'] },
    products: { type: 'array', items: { type: 'string' } },
    [`detail${index}`]: { type: 'string', maxLength: 100 + index },
  },
  additionalProperties: false,
})

/** A schema for each event, no two of them alike. */
export const plannedEvents = (): Record<string, { properties: ReturnType<typeof propertiesOf> }> =>
  Object.fromEntries(
    Array.from({ length: eventCount }, (_, index) => [eventOf(index), { properties: propertiesOf(index) }]),
  )
