/** Events of a tracking plan's benchmark. */
export const eventCount = 100

/** Of the nth call. */
export const eventOf = (index: number): string => `Event ${index % eventCount}`

/** Of the properties of `nthCall`, with a pattern, an enum, a bound and a list. */
const properties = {
  type: 'object',
  required: ['orderId', 'total', 'currency'],
  properties: {
    orderId: { type: 'string', pattern: '^order-[0-9]+$' },
    total: { type: 'number', minimum: 0 },
    currency: { enum: ['EUR', 'USD', 'GBP'] },
    products: { type: 'array', items: { type: 'string' } },
  },
  additionalProperties: false,
}

/** A schema for each event, none of them shared. */
export const plannedEvents = (): Record<string, { properties: typeof properties }> =>
  Object.fromEntries(
    Array.from({ length: eventCount }, (_, index) => [
      eventOf(index),
      { properties: structuredClone(properties) },
    ]),
  )
