// What went out in an attempt and what came back, as the API and the commands show it.
import { z } from 'zod'
import { fieldsIn, type Exchange, type HeaderField } from '../core/delivery/exchange.ts'

const headers = z.array(z.object({ name: z.string(), value: z.string() }))

/** Beside the body of each. */
export const exchangeShape = {
  headers: headers
    .nullable()
    .describe('Of the response, at most 2 KB; null without one, or where they were not kept.'),
  request: z
    .object({
      method: z.string(),
      url: z.string().describe('As it was asked for.'),
      headers: headers.describe('As they went out, without signatures, tokens and values of static headers.'),
      bodyBytes: z.number().int().describe('How long its body was; of a batch the whole body.'),
    })
    .nullable()
    .describe('URL and headers: at most 4 KB. Null where it was not kept.'),
}

export interface ShownExchange {
  headers: HeaderField[] | null
  request: { method: string; url: string; headers: HeaderField[]; bodyBytes: number } | null
}

export const shownExchange = (exchange: Exchange | null): ShownExchange => ({
  headers: exchange?.responseFields ? fieldsIn(exchange.responseFields) : null,
  request: exchange && {
    method: exchange.method,
    url: exchange.url,
    headers: fieldsIn(exchange.requestFields),
    bodyBytes: exchange.bodyBytes,
  },
})
