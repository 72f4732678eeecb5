/**
 * What went out in one attempt, and the head of what came back, for people who look into a failure. Secrets are struck
 * out, and the body of the request is left out: it is the delivery's own.
 */
export interface Exchange {
  method: string
  /** As it was asked for, its holes filled. */
  url: string
  /** Of the request, in their order: `Name: value`, a line each. */
  requestFields: string
  /** How long its body was; of a batch the whole body. */
  bodyBytes: number
  /** Of the response, as `requestFields`; null where none came. */
  responseFields: string | null
}

/** The one of a delivery's last attempt that was sent. */
export interface LastExchange extends Exchange {
  endpointId: string
  /** Epoch ms, as in the attempt's outcome. */
  at: number
}

/** How much of a request's URL and header is kept, in bytes. */
export const keptRequestBytes = 4 * 1024
/** How much of a response's header. */
export const keptResponseFieldsBytes = 2 * 1024

/** A header as it is shown; a line that was cut off ends where it was. */
export interface HeaderField {
  name: string
  value: string
}

export const fieldsIn = (lines: string): HeaderField[] =>
  lines.split('\n').flatMap((line) => {
    const colon = line.indexOf(':')
    return colon <= 0 ? [] : [{ name: line.slice(0, colon), value: line.slice(colon + 1).trim() }]
  })
