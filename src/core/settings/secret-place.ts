import { canonicalUrl } from '../delivery/endpoint-url.ts'

/**
 * Where a secret is used, in one spelling. It is sealed for that place alone, so that a client that may write settings cannot
 * move it to where its text comes out: a shared secret into a header, or a header to another host. A header belongs to
 * its URL in whatever spelling, for an edit of the URLs keeps headers by that.
 */
export type SecretPlace = string

export const sharedSecretPlace = (destinationId: string): SecretPlace =>
  JSON.stringify(['shared-secret', destinationId])

export const headerPlace = (destinationId: string, url: string, name: string): SecretPlace =>
  JSON.stringify(['header', name.toLowerCase(), destinationId, canonicalUrl(url)])
